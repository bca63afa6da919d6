package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/natscope/natscope/subjects"
)

// storageFlags size the streams of a space.
type storageFlags struct {
	memory                 bool
	replicas               int
	recordBytes, bodyBytes size
	recordAge, bodyAge     time.Duration
}

// registerElsewhere adds the flags that only make sense with a server elsewhere.
func (f *storageFlags) registerElsewhere(fl *pflag.FlagSet) {
	fl.BoolVar(&f.memory, "memory", false, "keep new streams in memory; existing ones stay where they are")
}

func (f *storageFlags) register(fl *pflag.FlagSet) {
	fl.IntVar(&f.replicas, "replicas", 1, "copies of each stream in a NATS cluster: 1, 3 or 5")
	fl.Var(&f.recordBytes, "record-bytes", "bound of the record stream, such as 2GiB (default 2GiB)")
	fl.DurationVar(&f.recordAge, "record-age", 0, "age bound of records (default 1h)")
	fl.Var(&f.bodyBytes, "body-bytes", "bound of the body stream, such as 256MiB (default 256MiB)")
	fl.DurationVar(&f.bodyAge, "body-age", 0, "age bound of bodies (default 15m)")
}

func (f *storageFlags) check() error {
	switch f.replicas {
	case 0, 1, 3, 5:
	default:
		return fmt.Errorf("--replicas %d: use 1, 3 or 5", f.replicas)
	}
	if f.recordAge < 0 || f.bodyAge < 0 {
		return fmt.Errorf("--record-age and --body-age must not be negative")
	}
	return nil
}

func (f *storageFlags) storage() subjects.Storage {
	return subjects.Storage{
		Memory: f.memory, Replicas: f.replicas,
		RecordBytes: int64(f.recordBytes), RecordAge: f.recordAge,
		BodyBytes: int64(f.bodyBytes), BodyAge: f.bodyAge,
	}
}

// keepFlags bound what is kept of each source. All stores and gateways of a space should have the same ones.
type keepFlags struct {
	requests, console, disconnected int
}

func (f *keepFlags) register(fl *pflag.FlagSet) {
	d := subjects.DefaultLimits()
	fl.IntVar(&f.requests, "keep-requests", d.Requests, "requests kept for each source")
	fl.IntVar(&f.console, "keep-console", d.ConsoleEntries, "console entries kept for each source")
	fl.IntVar(&f.disconnected, "keep-disconnected", d.DisconnectedTrees, "disconnected sources kept in the space")
}

func (f *keepFlags) check() error {
	if f.requests < 0 || f.console < 0 || f.disconnected < 0 {
		return fmt.Errorf("--keep-requests, --keep-console and --keep-disconnected must not be negative; 0 means the default")
	}
	return nil
}

func (f *keepFlags) limits() subjects.Limits {
	return subjects.Limits{Requests: f.requests, ConsoleEntries: f.console, DisconnectedTrees: f.disconnected}
}

// size is a number of bytes as people write it: 512, 64KiB, 1.5GiB.
type size int64

var units = []struct {
	suffix string
	factor float64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {"", 1}}

// Set parses a size.
func (s *size) Set(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 1 && n*u.factor <= 1<<60) { // so that NaN is none
			break
		}
		*s = size(n * u.factor)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 512MiB or 2GiB", text)
}

// String returns the size in bytes.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type names the kind of value in the help.
func (s *size) Type() string { return "size" }
