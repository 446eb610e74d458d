// What can go wrong in a world, and how it is put right again. Keeps within what is promised: fewer than a majority of memories are lost at a time. Counts what it did.
import { majority } from "#lock/quorum/tally.js";
import type { Timeline } from "../engine/timeline.js";
import type { Machine } from "../network/machine.js";
import type { Path } from "../network/path.js";
import { Memory } from "../server/memory.js";
import { type Fault, type FaultKind, faultKinds, type Scenario } from "./scenario.js";
import type { Station } from "./station.js";

export interface Stage {
  readonly timeline: Timeline;
  readonly scenario: Scenario;
  readonly machines: readonly Machine[];
  readonly stations: readonly Station[];
  /** Nodes whose memory is lost, or was never believed yet. */
  readonly forgetful: Set<string>;
  readonly tell: ((actor: string, what: string) => void) | undefined;
  /** What remains to be done to a server that begins a new life. */
  onNewLife(machine: Machine, before: Memory): void;
  /** A new process runs there. */
  onBegin(station: Station): void;
}

/** What puts it right. */
type Undo = () => void;

const SNAPSHOT_EVERY_MS = 200;
const SNAPSHOTS = 4;
const SLOWEST_MS = 80;

export class Faults {
  readonly counts: Record<FaultKind, number>;
  readonly #stage: Stage;
  readonly #undos = new Set<Undo>();
  readonly #snapshots = new Map<Machine, Memory[]>();
  #isOver = false;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.counts = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;
    const { timeline, scenario } = stage;
    for (const fault of scenario.faults) if (fault.atMs < scenario.stormMs) timeline.at(fault.atMs, () => this.begin(fault));
    const losesTails =
      scenario.faults.some(({ kind }) => kind === "lose tail") || scenario.ambushes.some(({ kind }) => kind === "left behind");
    if (scenario.appendfsync !== "always" && losesTails) this.#keepSnapshots();
  }

  /** Everything is put right. */
  end(): void {
    this.#isOver = true;
    for (const undo of [...this.#undos]) undo();
    for (const { paths } of this.#stage.stations) for (const path of paths) path.heal();
  }

  /** Now; gives what ends it before its time. undefined: it was not possible now. */
  begin(fault: Fault): Undo | undefined {
    const { machines, stations, timeline, tell } = this.#stage;
    const machine = machines[fault.node % machines.length];
    const station = stations[fault.client % stations.length];
    if (machine === undefined || station === undefined || this.#isOver) return undefined;
    const undo = this.#inflict(fault, machine, station);
    if (undo === undefined) return undefined;
    this.counts[fault.kind]++;
    tell?.("fault", `${fault.kind} (${machine.server.name}, ${station.name}, strength ${fault.strength}) for ${fault.lastsMs} ms`);
    const once = (): void => {
      if (!this.#undos.delete(once)) return;
      tell?.("fault", `${fault.kind} (${machine.server.name}, ${station.name}) is over`);
      undo();
    };
    this.#undos.add(once);
    timeline.after(fault.lastsMs, once);
    return once;
  }

  /** undefined: not now. */
  #inflict(fault: Fault, machine: Machine, station: Station): Undo | undefined {
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
        return this.#onClient(fault, station);
      default:
        return this.#onPaths(fault, this.#paths(fault, machine, station));
    }
  }

  /** From one process, or in a strong fault from all. */
  #paths({ strength }: Fault, machine: Machine, station: Station): readonly Path[] {
    const index = this.#stage.machines.indexOf(machine);
    const from = strength > 0.5 ? this.#stage.stations : [station];
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
    // What was not synced always is not believed after a crash, whether or not it is all there.
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
    this.#stage.onNewLife(machine, before);
    return () => {};
  }

  /** Where a log is synced always, its end is not lost. */
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
      this.#stage.onNewLife(machine, before);
      machine.comeUp();
    };
  }

  #onClient({ kind, strength }: Fault, station: Station): Undo | undefined {
    const { process } = station;
    if (process.state !== "running") return undefined;
    if (kind === "jump client") {
      process.jumpWall((strength - 0.5) * 4_000);
      return () => {};
    }
    if (kind === "stop client") {
      process.stop();
      return () => process.continue();
    }
    station.die();
    return () => {
      station.begin();
      this.#stage.onBegin(station);
    };
  }

  /** Where clocks go evenly they are only set back: set forward, keys would end early, which costs exclusion. */
  #jumpMs(strength: number): number {
    return this.#stage.scenario.clocks === "even" ? -strength * 500 : (strength - 0.5) * 4_000;
  }

  #mayForget({ server }: Machine): boolean {
    const { forgetful, scenario } = this.#stage;
    // What is not believed has nothing to forget.
    return forgetful.has(server.name) || forgetful.size < scenario.nodes - majority(scenario.nodes);
  }

  #keepSnapshots(): void {
    const { timeline, machines } = this.#stage;
    if (this.#isOver) return;
    for (const machine of machines) {
      const kept = this.#snapshots.get(machine) ?? [];
      if (machine.state === "running") kept.push(machine.server.memory.copy());
      this.#snapshots.set(machine, kept.slice(-SNAPSHOTS));
    }
    timeline.after(SNAPSHOT_EVERY_MS, () => this.#keepSnapshots());
  }
}
