// Package trials holds the tests of what natscope promises while things fail:
// servers that stop, processes that are killed or frozen, networks that break,
// programs that send what no program should. It exports nothing.
//
// Every trial works with real parts. Processes that are to be killed or frozen
// are the test binary itself, started again with a role (see TestMain), or the
// natscope command. A trial compares what the readers hold with what the
// producers recorded, and says what was lost when they differ.
package trials
