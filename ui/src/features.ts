// Lists what features add to the page: tabs, parts of the inbox, sections of the status tab, pages about a
// chain, and bots to connect. A feature is left out by removing its folder and its lines here.

import type { ComponentType } from "preact";
import { CRON_TAB } from "./features/cron/feature.ts";
import { DISCORD_BOT } from "./features/discord/feature.ts";
import { DOCTOR_TAB } from "./features/doctor/feature.ts";
import { MetricsSection } from "./features/metrics/feature.tsx";
import { NODES_TAB } from "./features/nodes/feature.ts";
import { PushPart } from "./features/push/feature.tsx";
import { REPLAY_PAGES } from "./features/replay/feature.ts";
import { TELEGRAM_BOT } from "./features/telegram/feature.ts";
import type { ChainPage } from "./flow/actions.tsx";
import type { TabRow } from "./operations/tabs.ts";
import type { Bot } from "./setup/connect-chat.tsx";

/** Parts of the bar above the inbox. */
export const INBOX_PARTS: readonly ComponentType[] = [PushPart];

/** Sections at the end of the status tab. */
export const STATUS_SECTIONS: readonly ComponentType[] = [MetricsSection];

export const FEATURE_TABS: readonly TabRow[] = [CRON_TAB, NODES_TAB, DOCTOR_TAB];

export const CHAIN_PAGES: readonly ChainPage[] = [REPLAY_PAGES].flat();

export const BOTS: readonly Bot[] = [TELEGRAM_BOT, DISCORD_BOT];
