/** One door to everything that the pages share; importing it brings the status strip to life. */

import { startStrip } from "./strip.js";

export { estimateChart, sparkline } from "./charts.js";
export { askDialog, confirmDialog, openDialog } from "./dialogs.js";
export { count, delay, duration, h, kept, keptByTab, percent, plural, replace, setText, svg } from "./dom.js";
export { cancelJob, onState, refreshState, startJob, watchJob } from "./live.js";
export { holder, onWho, setWho, who } from "./me.js";
export { nameDialog } from "./names.js";
export { api, ApiError, newUid, onSaving } from "./net.js";
export { barElement, jobPanel, setBar, shareDone, stageWord } from "./progress.js";
export { byBadge, imageUrl, prefetch, thumbElement } from "./thumbs.js";
export { toast } from "./toast.js";

startStrip();
