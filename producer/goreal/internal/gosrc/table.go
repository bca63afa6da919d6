package gosrc

import (
	"debug/elf"
	"debug/gosym"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// MaxFiles is how many files are listed.
const MaxFiles = 5000

// ErrTable says that the line table of the executable cannot be read.
var ErrTable = errors.New("gosrc: the program's line table cannot be read")

// Files lists the files of the main module that are compiled into the running
// program, by the names that the compiler gave them, sorted, at most MaxFiles.
// It reads the executable, which takes some tens of milliseconds.
func Files() ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	data, text, err := lineTable(exe)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTable, err)
	}
	seen := make(map[string]bool)
	for i := range table.Funcs {
		f := &table.Funcs[i]
		if f.Sym == nil || !isOwn(f.PackageName()) {
			continue
		}
		file, _, _ := table.PCToLine(f.Entry)
		if strings.HasSuffix(file, ".go") && file != "_testmain.go" && isOf(file, f.PackageName()) {
			seen[file] = true
		}
	}
	out := slices.Sorted(maps.Keys(seen))
	return out[:min(len(out), MaxFiles)], nil
}

// isOf reports whether a file can be one of a package: a function that begins
// with one that was inlined begins in the other's file.
func isOf(file, pkg string) bool {
	if strings.Contains(file, "@v") {
		return false
	}
	return pkg == "main" || path.Base(path.Dir(file)) == path.Base(pkg)
}

// isOwn reports whether a package is of the main module.
func isOwn(pkg string) bool {
	if pkg == "main" {
		return true
	}
	info, ok := mainModule()
	return ok && (pkg == info || strings.HasPrefix(pkg, info+"/"))
}

// mainModule is the path of the main module.
var mainModule = sync.OnceValues(func() (string, bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	return info.Main.Path, info.Main.Path != ""
})

func exists(path string) bool { s, err := os.Stat(path); return err == nil && !s.IsDir() }

// lineTable reads the line table out of an executable of any of the usual formats.
func lineTable(exe string) (table []byte, text uint64, err error) {
	if f, err := elf.Open(exe); err == nil {
		defer f.Close()
		for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
			if s := f.Section(name); s != nil && f.Section(".text") != nil {
				data, err := s.Data()
				return data, f.Section(".text").Addr, err
			}
		}
		return nil, 0, errors.New("it has no .gopclntab")
	}
	if f, err := macho.Open(exe); err == nil {
		defer f.Close()
		if s, t := f.Section("__gopclntab"), f.Section("__text"); s != nil && t != nil {
			data, err := s.Data()
			return data, t.Addr, err
		}
		return nil, 0, errors.New("it has no __gopclntab")
	}
	f, err := pe.Open(exe)
	if err != nil {
		return nil, 0, errors.New("the format of the executable is unknown")
	}
	defer f.Close()
	return peTable(f)
}

// peTable finds the table by its symbols, since Windows has no section for it.
func peTable(f *pe.File) ([]byte, uint64, error) {
	at := make(map[string]*pe.Symbol)
	for _, s := range f.Symbols {
		at[s.Name] = s
	}
	from, to, text := at["runtime.pclntab"], at["runtime.epclntab"], f.Section(".text")
	if from == nil || to == nil || text == nil || from.SectionNumber < 1 || int(from.SectionNumber) > len(f.Sections) {
		return nil, 0, errors.New("it has no symbols")
	}
	data, err := f.Sections[from.SectionNumber-1].Data()
	if err != nil || from.Value > to.Value || int(to.Value) > len(data) {
		return nil, 0, errors.New("its symbols are damaged")
	}
	base := uint64(0)
	if h, ok := f.OptionalHeader.(*pe.OptionalHeader64); ok {
		base = h.ImageBase
	}
	return data[from.Value:to.Value], base + uint64(text.VirtualAddress), nil
}
