// Lists the checks of `parley doctor` that features add.

import { FEATURES } from "../features.ts";

export const FEATURE_CHECKS = FEATURES.flatMap(({ doctor }) => doctor ?? []);
