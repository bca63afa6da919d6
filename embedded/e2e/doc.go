// Package e2e holds the end-to-end tests: they start natscope as a process, as
// a user would, open the real DevTools frontend in headless Chromium, and assert
// what a person would see there. It exports nothing.
//
// With -update the tests also renew the screenshots of the documentation.
package e2e
