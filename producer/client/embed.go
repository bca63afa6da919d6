// Package client holds natscope's JavaScript producer: plain ES modules, which
// run as they are and have no build step.
//
// It owns the files and the form in which pages get them (Bundle, Lean), and makes
// them available to Go programs that serve them (package ingest). The entry is
// client.js. shared/ uses nothing that only a browser or only Node has; browser/
// and node/ have the same file names; attached/ is what an inspector puts into a
// Node program that does not know of natscope (Attached). The package starts no goroutine.
package client

import (
	"embed"
	"io/fs"
)

//go:embed client.js plugin.js shared/*.js browser/*.js node/*.js attached/*.js
var files embed.FS

// Files returns the modules, with client.js at the top. The file system is read-only.
func Files() fs.FS { return files }
