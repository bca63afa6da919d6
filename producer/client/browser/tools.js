/**
 * What commands need of a page. It is loaded with the first command, so that a
 * page that nobody looks at does not carry it.
 */
export { overlay } from './overlay.js';
export { pick } from './pick.js';
export { openInEditor } from './editor.js';
