package httpapi

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/query/schema"
)

// fromParameters makes the question of a type from the parameters of an address.
// A list is a parameter that comes several times. Unlike fields of JSON, unknown
// parameters are refused: people type them. The error wraps query.ErrMalformed.
func fromParameters(t reflect.Type, values url.Values) ([]byte, error) {
	out := make(map[string]any)
	fields := schema.Fields(t)
	for name, v := range values {
		i := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == name })
		if i < 0 {
			var names []string
			for _, f := range fields {
				names = append(names, f.Name)
			}
			return nil, query.Errorf(query.ErrMalformed, "there is no parameter %.80q; there are %s", name, strings.Join(names, ", "))
		}
		x, err := parameter(fields[i].Type, v)
		if err != nil {
			return nil, query.Errorf(query.ErrMalformed, "parameter %s: %v", name, err)
		}
		out[name] = x
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, query.Errorf(query.ErrMalformed, "the parameters: %v", err)
	}
	return data, nil
}

// parameter turns the texts of one parameter into a value of a type.
func parameter(t reflect.Type, texts []string) (any, error) {
	text := texts[len(texts)-1]
	switch {
	case t == reflect.TypeFor[time.Time]():
		return time.Parse(time.RFC3339, text)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Interface:
		out := []any{}
		for _, s := range texts {
			if n, err := strconv.ParseUint(s, 10, 31); err == nil {
				out = append(out, n)
			} else {
				out = append(out, s)
			}
		}
		return out, nil
	case t.Kind() == reflect.Slice:
		return texts, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		if text == "" {
			return true, nil
		}
		return strconv.ParseBool(text)
	case reflect.Int, reflect.Int64:
		return strconv.ParseInt(text, 10, 64)
	}
	return text, nil
}
