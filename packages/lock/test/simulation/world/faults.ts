// The faults of a world, and their end. Stays within what is promised: fewer than a majority of
// memories are lost at a time.
import { majority } from "#lock/quorum.js";
import { Memory } from "../commands.js";
import type { Machine, Path } from "../network.js";
import type { Host } from "./host.js";
import { type Fault, type FaultKind, faultKinds } from "./scenario.js";
import type { Stage } from "./stage.js";

/** Ends a fault. */
type Undo = () => void;

const SNAPSHOT_EVERY_MS = 200;
const SNAPSHOTS = 4;
const SLOWEST_MS = 80;

export class Faults {
  readonly counts: Record<FaultKind, number>;
  readonly #stage: Stage;
  readonly #hosts: readonly Host[];
  readonly #onBegin: (host: Host) => void;
  readonly #undos = new Set<Undo>();
  readonly #snapshots = new Map<Machine, Memory[]>();
  #isOver = false;

  /** `onBegin`: a new process runs on a host. */
  constructor(stage: Stage, hosts: readonly Host[], onBegin: (host: Host) => void) {
    this.#stage = stage;
    this.#hosts = hosts;
    this.#onBegin = onBegin;
    this.counts = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
    const { timeline, scenario } = stage;
    for (const fault of scenario.faults) if (fault.atMs < scenario.stormMs) timeline.at(fault.atMs, () => this.begin(fault));
    const losesTails =
      scenario.faults.some(({ kind }) => kind === "lose tail") || scenario.ambushes.some(({ kind }) => kind === "left behind");
    if (scenario.appendfsync !== "always" && losesTails) this.#keepSnapshots();
  }

  /** Ends all faults, for good. */
  end(): void {
    this.#isOver = true;
    for (const undo of [...this.#undos]) undo();
    for (const { paths } of this.#hosts) for (const path of paths) path.heal();
  }

  /** Begins a fault now and returns its end. undefined: it is not possible now. */
  begin(fault: Fault): Undo | undefined {
    const { members, timeline, log } = this.#stage;
    const machine = members[fault.node % members.length];
    const host = this.#hosts[fault.client % this.#hosts.length];
    if (machine === undefined || host === undefined || this.#isOver) return undefined;
    const undo = this.#inflict(fault, machine, host);
    if (undo === undefined) return undefined;
    this.counts[fault.kind]++;
    this.#stage.turns?.changed();
    log?.("fault", `${fault.kind} (${machine.server.name}, ${host.name}, strength ${fault.strength}) for ${fault.lastsMs} ms`);
    const once = (): void => {
      if (!this.#undos.delete(once)) return;
      log?.("fault", `${fault.kind} (${machine.server.name}, ${host.name}) is over`);
      undo();
      this.#stage.turns?.changed();
    };
    this.#undos.add(once);
    timeline.after(fault.lastsMs, once);
    return once;
  }

  /** undefined: not possible now. */
  #inflict(fault: Fault, machine: Machine, host: Host): Undo | undefined {
    switch (fault.kind) {
      case "stop node":
      case "crash node":
      case "lose tail":
      case "wipe node":
      case "flush node":
      case "flush scripts":
      case "jump node":
      case "refuse":
        return this.#onNode(fault, machine);
      case "stop client":
      case "crash client":
      case "jump client":
        return this.#onClient(fault, host);
      default:
        return this.#onPaths(fault, this.#paths(fault, machine, host));
    }
  }

  /** The paths from one host, or from all hosts if the fault is strong. */
  #paths({ strength }: Fault, machine: Machine, host: Host): readonly Path[] {
    const index = this.#stage.members.indexOf(machine);
    const from = strength > 0.5 ? this.#hosts : [host];
    return from.flatMap(({ paths }) => paths[index] ?? []);
  }

  #onPaths({ kind, strength }: Fault, paths: readonly Path[]): Undo {
    const each = (what: (path: Path) => void) => (): void => {
      for (const path of paths) what(path);
    };
    const open = each(({ there, back }) => {
      there.open();
      back.open();
    });
    const begin: Partial<Record<FaultKind, (path: Path) => void>> = {
      cut: (path) => path.cut(),
      "hold requests": ({ there }) => there.hold(),
      "hold replies": ({ back }) => back.hold(),
      partition({ there, back }) {
        there.hold();
        back.hold();
      },
      slow({ there, back }) {
        (strength % 0.1 < 0.05 ? there : back).slowerMs = strength * SLOWEST_MS;
      },
      "second time"(path) {
        path.secondTimes = strength / 2;
      },
    };
    each(begin[kind] ?? (() => {}))();
    if (kind === "slow") return each((path) => Object.assign(path.there, { slowerMs: 0 }) && Object.assign(path.back, { slowerMs: 0 }));
    if (kind === "second time") return each((path) => Object.assign(path, { secondTimes: 0 }));
    return kind === "cut" ? () => {} : open;
  }

  #onNode({ kind, strength }: Fault, machine: Machine): Undo | undefined {
    const { server } = machine;
    if (kind === "refuse") {
      machine.isRefusing = true;
      return () => {
        machine.isRefusing = false;
      };
    }
    if (kind === "jump node") {
      server.jumpClock(this.#jumpMs(strength));
      return () => {};
    }
    if (machine.state !== "running") return undefined;
    if (kind === "stop node") {
      machine.stop();
      return () => machine.continue();
    }
    if (kind === "flush scripts") {
      server.flushScripts();
      return () => {};
    }
    // Without appendfsync always, the lock believes no memory after a crash, even a whole one.
    const isKept = kind === "crash node" && this.#stage.scenario.appendfsync === "always";
    if (isKept) return this.#crash(machine, server.memory);
    if (!this.#mayForget(machine)) return undefined;
    if (kind === "crash node") {
      this.#stage.forgetful.add(server.name);
      return this.#crash(machine, server.memory);
    }
    if (kind === "lose tail") return this.#loseTail(machine, strength);
    this.#stage.forgetful.add(server.name);
    if (kind === "wipe node") return this.#crash(machine, new Memory());
    const before = server.memory.copy();
    server.memory.clear();
    this.#stage.rules.onNewLife?.(machine.server, before);
    return () => {};
  }

  /** Not possible with appendfsync always: no snapshots are kept then. */
  #loseTail(machine: Machine, strength: number): Undo | undefined {
    const kept = this.#snapshots.get(machine);
    const snapshot = kept?.[Math.floor(strength * (kept.length - 1))];
    if (snapshot === undefined) return undefined;
    this.#stage.forgetful.add(machine.server.name);
    return this.#crash(machine, snapshot.copy());
  }

  #crash(machine: Machine, remembered: Memory): Undo {
    const before = machine.server.memory;
    machine.goDown();
    machine.server.end();
    return () => {
      machine.server.start(remembered);
      this.#stage.rules.onNewLife?.(machine.server, before);
      machine.comeUp();
    };
  }

  #onClient({ kind, strength }: Fault, host: Host): Undo | undefined {
    const { process } = host;
    if (process.state !== "running") return undefined;
    if (kind === "jump client") {
      process.jumpWall((strength - 0.5) * 4_000);
      return () => {};
    }
    if (kind === "stop client") {
      process.stop();
      return () => process.continue();
    }
    host.die();
    return () => {
      host.begin();
      this.#onBegin(host);
    };
  }

  /** Even clocks are only set back: set forward, keys would end early, and L2 would not hold. */
  #jumpMs(strength: number): number {
    return this.#stage.scenario.clocks === "even" ? -strength * 500 : (strength - 0.5) * 4_000;
  }

  #mayForget({ server }: Machine): boolean {
    const { forgetful, scenario } = this.#stage;
    // A memory that is not believed does not count again.
    return forgetful.has(server.name) || forgetful.size < scenario.nodes - majority(scenario.nodes);
  }

  #keepSnapshots(): void {
    const { timeline, members } = this.#stage;
    if (this.#isOver) return;
    for (const machine of members) {
      const kept = this.#snapshots.get(machine) ?? [];
      if (machine.state === "running") kept.push(machine.server.memory.copy());
      this.#snapshots.set(machine, kept.slice(-SNAPSHOTS));
    }
    timeline.after(SNAPSHOT_EVERY_MS, () => this.#keepSnapshots());
  }
}
