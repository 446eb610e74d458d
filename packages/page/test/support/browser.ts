// The operator's page in a real browser: opened with a key, and watched for what it must not do.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromiumLaunch } from "@palisade/testkit";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";

export type { Page } from "playwright-core";

export async function startBrowser(): Promise<Browser> {
  const { args, ...launch } = await chromiumLaunch();
  return await chromium.launch({ ...launch, args: [...args] });
}

export interface Visit {
  readonly adminUrl: string;
  readonly key: string;
  /** After the #. */
  readonly view?: string;
  readonly options?: BrowserContextOptions;
}

/** The page with what it asked for and complained of. */
export interface Visited {
  readonly page: Page;
  /** Addresses that it asked for. */
  readonly asked: readonly string[];
  /** Errors, dialogs, and breaches of the policy. */
  readonly trouble: readonly string[];
}

export async function visit(browser: Browser, { adminUrl, key, view = "", options = {} }: Visit): Promise<Visited> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, ...options });
  const page = await context.newPage();
  const [asked, trouble] = [[] as string[], [] as string[]];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => trouble.push(error.message));
  page.on("dialog", (dialog) => {
    trouble.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // The first question is asked without a key, and refused.
    if (message.type() === "error" && !message.text().includes("status of 40")) trouble.push(message.text());
  });
  await page.goto(`${adminUrl}/page/${view}`);
  await page.getByLabel("Key").fill(key);
  await page.keyboard.press("Enter");
  return { page, asked, trouble };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What a screen reader, or somebody who sees little, would stumble over. */
export async function barriers(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  return await page.evaluate(async () => {
    const { axe: checker } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> };
    };
    const { violations } = await checker.run();
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
  });
}

/** By how many pixels the page is wider than its window. */
export async function overflow(page: Page): Promise<number> {
  return await page.evaluate(() => {
    const { document } = globalThis as unknown as { document: { scrollingElement: { scrollWidth: number; clientWidth: number } } };
    return document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth;
  });
}

/** How many pixels of a text do not fit where it stands. */
export async function hidden(text: Locator): Promise<number> {
  return await text.evaluate((element) => {
    const { scrollWidth, clientWidth } = element as unknown as { scrollWidth: number; clientWidth: number };
    return Math.max(0, scrollWidth - clientWidth);
  });
}

/** Counts from now: which part of the time the page's thread was busy. */
export async function busyTime(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const taskSeconds = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
  };
  const [tasksBefore, startedAt] = [await taskSeconds(), performance.now()];
  return async () => ((await taskSeconds()) - tasksBefore) / ((performance.now() - startedAt) / 1_000);
}
