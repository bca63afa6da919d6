// Package schema describes the questions and answers of package query as JSON
// Schema, from their Go types and the descriptions in their tags.
//
// It must not know who serves the schemas. It starts no goroutine.
package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/tree"
)

// Schema is a JSON Schema, or an OpenAPI schema object of version 3.0.
type Schema = map[string]any

// Set collects the schemas of named types, so that others refer to them.
type Set struct {
	// Prefix stands before the names in references, such as "#/components/schemas/".
	Prefix string
	// Named holds the schemas by name.
	Named map[string]Schema
}

// Of returns the schema of a type: a reference to Named for structs.
func (s *Set) Of(t reflect.Type) Schema { return s.of(t, true) }

// Inline returns the schema of a struct type without references. The type must
// not contain itself.
func Inline(t reflect.Type) Schema {
	s := &Set{}
	return s.of(t, false)
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	attrType = reflect.TypeFor[tree.Attr]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

func (s *Set) of(t reflect.Type, refs bool) Schema {
	switch {
	case t == timeType:
		return Schema{"type": "string", "format": "date-time"}
	case t == rawType, t.Kind() == reflect.Interface:
		return Schema{}
	case t == attrType:
		return Schema{"type": "array", "items": Schema{"type": "string"}, "minItems": 2, "maxItems": 2}
	case t.Implements(textType):
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), refs)
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Slice:
		return Schema{"type": "array", "items": s.of(t.Elem(), refs)}
	case reflect.Array:
		return Schema{"type": "array", "items": s.of(t.Elem(), refs), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return Schema{"type": "object", "additionalProperties": s.of(t.Elem(), refs)}
	case reflect.Struct:
		if !refs {
			return s.object(t, false)
		}
		name := t.Name()
		if s.Named[name] == nil {
			s.Named[name] = Schema{} // A type that contains itself ends here.
			s.Named[name] = s.object(t, true)
		}
		return Schema{"$ref": s.Prefix + name}
	}
	panic("schema: " + t.String() + " cannot travel as JSON")
}

func (s *Set) object(t reflect.Type, refs bool) Schema {
	properties, required := Schema{}, []string{}
	for _, f := range Fields(t) {
		p := s.of(f.Type, refs)
		if f.Type.Kind() == reflect.Pointer && !f.Optional {
			// It may be null, which a reference cannot say in OpenAPI 3.0.
			p = Schema{"nullable": true, "allOf": []Schema{p}}
		}
		if f.Doc != "" {
			if p["$ref"] != nil {
				p = Schema{"allOf": []Schema{p}}
			}
			p["description"] = f.Doc
		}
		properties[f.Name] = p
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	out := Schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// Field is one field of a struct as it travels.
type Field struct {
	// Name is its name in JSON, Doc its description.
	Name, Doc string
	// Type is its Go type, Index where it is, for reflect.Value.FieldByIndex.
	Type  reflect.Type
	Index []int
	// Optional says that it may be absent.
	Optional bool
}

// Fields lists the fields of a struct type, those of embedded structs included.
func Fields(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			for _, x := range Fields(f.Type) {
				x.Index = append([]int{i}, x.Index...)
				out = append(out, x)
			}
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		out = append(out, Field{
			Name: name, Doc: f.Tag.Get("jsonschema"), Type: f.Type, Index: []int{i},
			Optional: strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"),
		})
	}
	return out
}
