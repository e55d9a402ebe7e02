// Telegram passes the contract tests of all channels, with a Bot API server on a real socket.

import { channelContract } from "../../contract/channel.ts";
import { openGround } from "./ground.ts";

channelContract("telegram", (host) => openGround(host));
