/** What commands need of a process: nothing of it can be done there. */
export { overlay } from './overlay.js';
export { pick } from './pick.js';
export { openInEditor } from './editor.js';
