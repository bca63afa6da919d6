package proctree

import (
	"log/slog"
	"runtime/debug"
)

// build is what the program was built from.
type build struct {
	module, version, revision, time string
	modified                        bool
	dependencies                    map[string]string
}

func readBuild() *build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return &build{module: "unknown"}
	}
	return newBuild(info)
}

func newBuild(info *debug.BuildInfo) *build {
	b := &build{module: info.Main.Path, version: info.Main.Version, dependencies: make(map[string]string, len(info.Deps))}
	if b.module == "" {
		b.module = info.Path
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		version := d.Version
		if d.Replace != nil {
			version += " => " + d.Replace.Path + " " + d.Replace.Version
		}
		b.dependencies[d.Path] = version
	}
	return b
}

// LogValue implements slog.LogValuer: what is known, in an order for people.
func (b *build) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("module", b.module)}
	for _, a := range []slog.Attr{slog.String("version", b.version), slog.String("revision", b.revision), slog.String("time", b.time)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	if b.modified {
		attrs = append(attrs, slog.Bool("modified", true))
	}
	return slog.GroupValue(append(attrs, slog.Any("dependencies", b.dependencies))...)
}
