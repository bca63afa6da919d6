package main

import (
	"os"
	"os/signal"
	"syscall"
)

// forwardedSignals are those that a program which natscope runs would have got in
// its place. A terminal sends its own to both of them. The caller calls stop.
func forwardedSignals(terminal bool) (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 16)
	list := []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}
	if !terminal {
		list = append(list, os.Interrupt, syscall.SIGQUIT)
	}
	signal.Notify(c, list...)
	return c, func() { signal.Stop(c) }
}

// signalNumber is the signal that ended a process, 0 if none did.
func signalNumber(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
