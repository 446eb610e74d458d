// The few kinds of settings.
import { z } from "zod";
import { databaseUrlFault } from "../store/database-urls.js";
import type { Setting } from "./setting.js";

type Described<K extends keyof Setting> = Pick<Setting, "env" | "help" | "fallback" | "otherwise" | K>;

export function number(described: Described<"env"> & { readonly range: readonly [number, number] }): Setting {
  const { range, ...rest } = described;
  const [least, most] = range;
  return {
    ...rest,
    schema: z.int().min(least).max(most),
    mustBe: `a whole number from ${least} to ${most}`,
    read: (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
  };
}

export function choice(described: Described<"env"> & { readonly choices: readonly string[] }): Setting {
  const { choices, ...rest } = described;
  return { ...rest, schema: z.enum(choices), mustBe: `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}` };
}

export function list(described: Described<"mustBe"> & { readonly item: z.ZodType }): Setting {
  const { item, ...rest } = described;
  const read = (text: string): unknown =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
  return { ...rest, schema: z.array(item).min(1), read };
}

export function secret(setting: Setting): Setting {
  return { ...setting, secret: true };
}

export function urlOf(...protocols: string[]): z.ZodType {
  return z.string().refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol));
}

/** Of a node of the lock; where there are several fleets, with the name of its own before it. */
export const nodeUrl: z.ZodType = z.string().refine((text) => {
  const url = withoutFleet(text);
  return URL.canParse(url) && ["redis:", "rediss:"].includes(new URL(url).protocol);
});

export function withoutFleet(text: string): string {
  return text.replace(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?=/, "");
}

export const shortText: z.ZodType = z.string().min(1).max(255);

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const aDatabase: Pick<Setting, "schema" | "fault" | "mustBe"> = {
  schema: z.string().refine((text) => databaseUrlFault(text) === undefined),
  fault: (given) => (typeof given === "string" ? databaseUrlFault(given) : undefined),
  mustBe: "a postgres:// URL",
};
