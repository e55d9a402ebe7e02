// Telegram keeps the promises of a channel, against a Bot API server on a real socket.

import { channelContract } from "../../contract/channel.ts";
import { openGround } from "./ground.ts";

channelContract("telegram", (host) => openGround(host));
