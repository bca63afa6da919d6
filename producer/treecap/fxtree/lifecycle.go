package fxtree

import (
	"time"

	"go.uber.org/fx/fxevent"

	"github.com/natscope/natscope/producer/treecap"
)

// lifecycle shows the start and the stop of the application and of its hooks.
func (l *Logger) lifecycle(event fxevent.Event) {
	switch e := event.(type) {
	case *fxevent.OnStartExecuting:
		l.state("starting", nil)
		l.hook(hookKey{"start", e.CallerName, e.FunctionName})
	case *fxevent.OnStartExecuted:
		l.hookEnded(hookKey{"start", e.CallerName, e.FunctionName}, e.Runtime, e.Err)
	case *fxevent.OnStopExecuting:
		l.state("stopping", nil)
		l.hook(hookKey{"stop", e.CallerName, e.FunctionName})
	case *fxevent.OnStopExecuted:
		l.hookEnded(hookKey{"stop", e.CallerName, e.FunctionName}, e.Runtime, e.Err)
	case *fxevent.Started:
		l.state(either(e.Err, "failed to start", "running"), e.Err)
	case *fxevent.Stopping:
		if e.Signal != nil {
			l.app.Set("signal", e.Signal.String())
		}
		l.state("stopping", nil)
	case *fxevent.Stopped:
		l.state(either(e.Err, "failed to stop", "stopped"), e.Err)
	case *fxevent.RollingBack:
		l.state("rolling back", e.StartErr)
	case *fxevent.RolledBack:
		l.state(either(e.Err, "failed to roll back", "rolled back"), e.Err)
	case *fxevent.LoggerInitialized:
		if e.Err != nil {
			l.state("no logger", e.Err)
		}
	}
}

// hook shows a hook that runs. fx tells of hooks when they run, not before.
func (l *Logger) hook(k hookKey) {
	n := l.app.Add("hook", treecap.Attr("on", k.when), treecap.Attr("function", short(k.function)),
		treecap.Attr("caller", short(k.caller)), treecap.Attr("state", "running"))
	l.hooks[k] = append(l.hooks[k], n)
}

func (l *Logger) hookEnded(k hookKey, took time.Duration, err error) {
	if n := take(l.hooks, k); n != nil {
		ended(n, took, err)
	}
}

func either(err error, failed, done string) string {
	if err != nil {
		return failed
	}
	return done
}

func (l *Logger) state(s string, err error) {
	l.app.Set("state", s)
	if err != nil {
		l.app.Set("error", err)
	}
}
