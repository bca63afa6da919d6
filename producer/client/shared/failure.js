/**
 * Why a command was not carried out. The codes are those of Go's package
 * subjects/realm.
 * @typedef {'unsupported' | 'malformed' | 'refused' | 'object-not-found' | 'no-session' | 'result-too-large' | 'busy' | 'failed'} Code
 */

/** An error with a code, whose message is a sentence for people. */
export class CommandError extends Error {
  /**
   * @param {Code} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
