package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/natscope/natscope/producer/v8"
)

// injectFlags say what is put into Node programs beyond what their inspector tells.
type injectFlags struct {
	inject []string
	redact string
}

func (f *injectFlags) register(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.inject, "inject", []string{"network", "cordis"}, "what is put into Node programs: network (requests), cordis (the tree of a Cordis runtime), cordis-details (that, with names and states), or none")
	fl.StringVar(&f.redact, "redact", "off", "what of requests must not leave Node programs: off, or secrets for the usual credentials; the requests of browsers are then not recorded")
}

// options reads the flags.
func (f *injectFlags) options() (v8.Inject, error) {
	var out v8.Inject
	for _, word := range f.inject {
		switch strings.TrimSpace(word) {
		case "network":
			out.Network = true
		case "cordis-details":
			out.Cordis, out.Details = true, true
		case "cordis":
			out.Cordis = true
		case "none":
			if len(f.inject) > 1 {
				return v8.Inject{}, fmt.Errorf("--inject none stands alone")
			}
		default:
			return v8.Inject{}, fmt.Errorf("--inject %q: use network, cordis, cordis-details or none", word)
		}
	}
	switch f.redact {
	case "off", "":
	case "secrets":
		out.Redact = true
	default:
		return v8.Inject{}, fmt.Errorf("--redact %q: use off or secrets", f.redact)
	}
	return out, nil
}
