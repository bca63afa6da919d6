package goreal

import (
	"sync"
	"time"

	"github.com/natscope/natscope/producer/goreal/internal/mirror"
)

// Guard says how a value is read without harm: Do calls its argument once, while
// nobody writes to the value, or returns an error that says why it did not. The
// argument only copies a few words; it never waits and never calls anything.
// Whatever is reached through a guarded value is read under the same guard, and
// a struct in it that has locks of its own under these, too. A Guard must be
// safe for concurrent use.
//
// A value without a guard is read under the locks among the fields of its struct
// (sync.Mutex and sync.RWMutex, also embedded, also by pointer). If it has none
// either, it is read as it is: numbers and texts may then be half of one write
// and half of another, and maps are not read at all.
type Guard = mirror.Guard

// Immutable is the guard of values that nobody writes to any more.
var Immutable = mirror.Immutable

// ErrBusy is the error of reads that did not get their lock in time.
var ErrBusy = mirror.ErrBusy

// Locked reads under a lock, which it waits for at most 100 ms. A *sync.RWMutex
// is locked for reading. For a lock that cannot be tried, one goroutine at a
// time waits; reads that come meanwhile fail.
func Locked(l sync.Locker) Guard { return mirror.Locked(l) }

// TryLocked is Locked with another time to wait.
func TryLocked(l sync.Locker, patience time.Duration) Guard { return mirror.TryLocked(l, patience) }

// OnExecutor reads on a goroutine of the program that owns the value, such as an
// event loop: submit hands a function over to be run there, once, at any time.
// A read waits at most half a second for its turn.
func OnExecutor(submit func(f func())) Guard { return mirror.OnExecutor(submit) }

// Snapshot makes a value for Realm.Expose that is told anew each time it is
// looked at. read runs on any goroutine and returns something that nobody
// changes any more, such as a copy made under the program's own lock; the guard
// given to Expose does not matter then.
func Snapshot(read func() any) any { return snapshot{read} }

type snapshot struct{ read func() any }
