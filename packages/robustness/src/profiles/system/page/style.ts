// How the page looks, by light and by dark. Nothing is loaded from anywhere.

export const style = `
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #22262b; --soft: #6b7280; --line: #e4e5e2; --card: #fff; --good: #2f8f5b; --bad: #cf3f38; --doubt: #d99a1c; --look: #5b8bd0; --lease: #dfe9f6;
  --nodes: #d9782d; --ways: #7f8fa9; --gateways: #8a5fc7; --store: #b8484f; --clients: #2c9a9a; --ambush: #4b5563; --silence: #f6e3e1; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e3e6ea; --soft: #939ba7; --line: #2b3037; --card: #1b1f24; --good: #4dbd83; --bad: #ef6a62; --doubt: #e6b24c; --look: #7aa7e8; --lease: #26364a;
  --nodes: #e9975a; --ways: #7888a3; --gateways: #ad8be3; --store: #dd7479; --clients: #4fbcbc; --ambush: #a3acb9; --silence: #3b2423; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 32px 24px 64px; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 36px 0 8px; } p { margin: 6px 0; max-width: 120ch; } .soft { color: var(--soft); }
.verdict { font-size: 17px; font-weight: 600; margin: 14px 0; padding: 12px 16px; border-radius: 8px; background: var(--card); border: 1px solid var(--line); border-left: 6px solid var(--good); max-width: none; }
.verdict.broken { border-left-color: var(--bad); }
code { font: 13px/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--card); border: 1px solid var(--line); border-radius: 4px; padding: 1px 5px; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 16px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; } .card b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; } .card span { color: var(--soft); font-size: 13px; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 8px 32px; align-items: start; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; } th { text-align: left; color: var(--soft); font-weight: 500; } th, td { padding: 3px 6px; border-bottom: 1px solid var(--line); } td:not(:first-child), th:not(:first-child) { text-align: right; }
figure { margin: 10px 0 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 8px; overflow-x: auto; } svg { display: block; width: 100%; min-width: 820px; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); } svg .tick, svg .tag { fill: var(--soft); font-size: 10px; } .grid { stroke: var(--line); } .moment { stroke: var(--bad); stroke-dasharray: 3 3; }
.done { fill: var(--good); } .refused { fill: var(--bad); } .unknown { fill: var(--doubt); } .silence { fill: var(--silence); } .call.look { fill: var(--look); } .call.look.refused { fill: var(--bad); } .call.look.unknown { fill: var(--doubt); }
.call { opacity: .9; } .lease { fill: var(--lease); } .stall { fill: var(--soft); } .revision { fill: var(--ink); }
.fault { opacity: .75; } .fault.nodes { fill: var(--nodes); } .fault.ways { fill: var(--ways); } .fault.gateways { fill: var(--gateways); } .fault.store { fill: var(--store); } .fault.clients { fill: var(--clients); } .fault.ambush { fill: var(--ambush); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; color: var(--soft); font-size: 13px; padding: 0; list-style: none; } .legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
`;
