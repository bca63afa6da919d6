// Package v8 makes sources of programs that it reaches through the inspector of
// their JavaScript engine: Node processes and their worker threads, Deno, and the
// pages and workers of a Chromium with a debugging port. The program's code stays as it is.
//
// It owns: finding the targets behind an address or in a directory, one
// connection for each target that only observes (console, exceptions, network),
// the records made of what it sees, and one private connection for each session
// of a gateway, through which that gateway evaluates and debugs. It must not know
// how records are shown, and of CDP only what the engines speak.
//
// # How a program is left alone
//
// The observing connection enables Runtime and, where the engine has it, Network;
// never Debugger. Into Node programs it evaluates natscope's client, if it may
// (Options.Inject), which captures what inspectors do not tell and speaks over this
// very connection. It compiles nothing else in the program: it reads the values of log
// calls from the previews that come with them and with Runtime.getProperties,
// bounded in number and time, and lets go of them at once. When the program ends,
// it disconnects at once, since an engine waits for its inspectors to leave.
//
// # Goroutines
//
//  1. The watcher of one endpoint, which polls it for targets. Attacher.Close ends it.
//  2. The observer of one target: reads its events and makes records. It ends when
//     the target or the Attacher does.
//  3. The reader and the writer of one connection. They end with the connection,
//     which its observer or its session closes.
package v8
