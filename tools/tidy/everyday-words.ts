// The words that need no glossary, because every developer knows them in this meaning, and the
// words that were given up for those of the field. A plural stands for its singular.

const listed = (text: string): ReadonlySet<string> => new Set(text.match(/[a-z]+/g));

export const everydayWords = listed(`
  account compared compile credential configured database reload writable abandoned explain abort acquire acquisition admin admission admit after amnesia ancestors answer api app
  apply apt arguments at attempt auth batch block body boot born budget build built bulk cache call
  cases catalogue causes chance change checkout child children choose client clock close collect
  command comment commit config configuration connection contact container contest contestant
  context copy cost counter coverage credentials cron curve data databases dead deadline delayed dev die
  directions directives distribution docker doctor document documentation does down drawing each encoded encoder
  end engine entries environment error event everyday exact example express extend failover failure fault
  fenced fetch fifo figures file fill first fixtures flight folder for forgotten format free frozen
  garbage gateway gauges gc global go group growth guard guarded hand handle handover heal heap
  held history home honest host http id images import in index injector inspect install interrupt
  interrupted intruder ioredis items job journal json judge jump jwt key keyring kinds kubernetes lane language last late
  latency layers leak leftovers limit line linearizability link list listener living load local
  locker log loop loss lua main majority malformed members memory messages misuse metrics migrate
  migration modify move mutant name native network no not notify npm once one only open openapi
  operation option orphan other outcome over own owned pacing packages page pair palisade panel parent
  paths pause peers pending picture pipeline place plan pnpm policy pool port postgres
  preconditions private probe problem process program progress prometheus promises protocol prototypes
  provider proxy puts query queue raise rate raw read readiness readmission ready reaper record
  recorded recorder redis reference refusal register release renew renewal replica reply report
  reporter request response results retention retry root rows rule run running sampler samples
  schedule schema scopes scratch scripts server session setting setup shared sizes slot source
  stack stage stall start state statement statistics status store stored style subscriptions syntax system
  table taken tally target tasks test text three time timeline tools transaction transfer transport tree trend
  trust ttl uncontended unexpected unfenced unreachable unsealed until up updates urls usage validity value
  verifier verify version versions view violation vocabulary votes wait waiter waiting wake wall wasm
  watch way with work write yield
  chart comparison cpu goal library part bundled changelog embedded installed pack publish published quickstart prepack registry tested use bundle force live
`);

/** Refused in the names of files and classes, also when the glossary has them. */
export const retiredWords = listed(`
  account alarms asked belief cast courtesy credulous debts desk door dormitory ending
  exchange gate introduction letters lifeguard nemesis outbox patience posting seat signs station
  stranger strike survey tell tenure told trade trial turnstile visit witness workshop
`);
