package shop

import "sync"

// maxUnread is how much news waits for a listener; one that is slower misses some.
const maxUnread = 8

// board tells news to everyone who listens. It is safe for concurrent use.
type board[T any] struct {
	mu        sync.Mutex // guards listeners
	listeners map[chan T]struct{}
}

func newBoard[T any]() *board[T] { return &board[T]{listeners: make(map[chan T]struct{})} }

// listen returns the news from now on, until stop is called.
func (b *board[T]) listen() (news <-chan T, stop func()) {
	c := make(chan T, maxUnread)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, c)
	}
}

// tell tells news and never waits.
func (b *board[T]) tell(news T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listeners {
		select {
		case c <- news:
		default:
		}
	}
}
