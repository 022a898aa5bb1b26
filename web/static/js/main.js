// @ts-check
// Starts each part of a page's behaviour. Pages read without it; nothing here computes a verdict.
import { startControls } from "./controls.js";
import { startCopying } from "./copy.js";
import { startGrid } from "./grid.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startOffline } from "./offline.js";
import { startPause } from "./pause.js";
import { startPieces } from "./pieces.js";
import { startProgress } from "./progress.js";
import { startStacks } from "./stacks.js";
import { startTimes } from "./times.js";

startControls();
startTimes();
startCopying();
startKeys();
startStacks();
startProgress();
startGrid();
startOffline();
startPieces();
startPause();
startLive();
