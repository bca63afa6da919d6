package v8

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// directoryEvery is how often the directory of inspectors is read.
const directoryEvery = 50 * time.Millisecond

// maxFiles is how many files of the directory are looked at.
const maxFiles = 4096

// watchDirectory reads the directory until the Attacher is closed.
func (a *Attacher) watchDirectory() {
	tick := time.NewTicker(directoryEvery)
	defer tick.Stop()
	known := make(map[string]time.Time)
	complained := false
	for {
		err := a.readDirectory(known)
		if err != nil && !complained {
			a.o.Logger.Warn("the directory of inspectors cannot be read", "directory", a.o.Directory, "error", err)
		}
		complained = err != nil
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// readDirectory begins to watch the endpoints of new and changed files.
func (a *Attacher) readDirectory(known map[string]time.Time) error {
	d, err := os.Open(a.o.Directory)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxFiles)
	if err != nil && err != io.EOF {
		return err
	}
	here := make(map[string]bool, len(names))
	for _, name := range names {
		here[name] = true
		if strings.HasPrefix(name, ".") {
			continue // being written
		}
		path := filepath.Join(a.o.Directory, name)
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() || known[name].Equal(st.ModTime()) {
			continue
		}
		known[name] = st.ModTime()
		line, err := firstLine(path)
		if err != nil {
			continue
		}
		list, err := ParseEndpoints(line)
		if err != nil || len(list) != 1 {
			a.o.Logger.Warn("a file names no inspector; its first line should be HOST:PORT", "file", path, "error", err)
			continue
		}
		if w := a.watch(list[0], true, true); w != nil {
			w.kick()
		}
	}
	for name := range known {
		if !here[name] {
			delete(known, name)
		}
	}
	return nil
}

func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	s := bufio.NewScanner(io.LimitReader(f, 4096))
	s.Scan()
	return s.Text(), s.Err()
}
