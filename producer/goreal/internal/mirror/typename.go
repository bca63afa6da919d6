package mirror

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

var typeSpelling = strings.NewReplacer("interface {}", "any", "[]uint8", "[]byte", "struct {}", "struct{}")

// typeName is a type as Go code spells it, packages by their last name.
func typeName(t reflect.Type) string { return typeSpelling.Replace(t.String()) }

// fullName is a type with the whole path of its package.
func fullName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return "*" + fullName(t.Elem())
	}
	if t.PkgPath() == "" || t.Name() == "" {
		return typeName(t)
	}
	return t.PkgPath() + "." + t.Name()
}

// bareName is a type without packages: in a preview inside of another one,
// DevTools cuts names with dots to three letters.
func bareName(t reflect.Type) string {
	if n := t.Name(); n != "" {
		base, args, generic := strings.Cut(n, "[")
		if !generic {
			return n
		}
		parts := strings.Split(strings.TrimSuffix(args, "]"), ",")
		for i, p := range parts {
			parts[i] = p[strings.LastIndexAny(p, "./")+1:]
		}
		return base + "[" + strings.Join(parts, ",") + "]"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + bareName(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == "" {
			return "[]byte"
		}
		return "[]" + bareName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + bareName(t.Elem())
	case reflect.Map:
		return "map[" + bareName(t.Key()) + "]" + bareName(t.Elem())
	case reflect.Chan:
		switch t.ChanDir() {
		case reflect.RecvDir:
			return "<-chan " + bareName(t.Elem())
		case reflect.SendDir:
			return "chan<- " + bareName(t.Elem())
		}
		return "chan " + bareName(t.Elem())
	case reflect.Struct:
		return "struct"
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return "any"
		}
		return "interface"
	case reflect.Func:
		return "func"
	}
	return t.String()
}

// keepDims hides the length of an array type from DevTools, which cuts the first
// number in brackets out of the description of a list: a word joiner behind it keeps it.
func keepDims(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] != '[' {
			continue
		}
		j := i + 1
		for j < len(s) && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		if j > i+1 && j < len(s) && s[j] == ']' {
			return s[:j] + "\u2060" + s[j:]
		}
	}
	return s
}

// shortFunc cuts the path of the package off the name of a function. The linker
// escapes dots in the path's last part: nats%2ego.(*Conn).Close.
func shortFunc(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if s, err := url.PathUnescape(name); err == nil {
		return s
	}
	return name
}

// ShortFunc is a function's name with the last part of its package's path only.
func ShortFunc(name string) string { return shortFunc(name) }

// TypeName is a type as Go code spells it.
func TypeName(t reflect.Type) string { return typeName(t) }
