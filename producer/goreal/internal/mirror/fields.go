package mirror

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// field is a field of a struct that is shown.
type field struct {
	name     string
	index    int
	exported bool
}

// info is what is remembered of a struct type.
type info struct {
	fields []field
	byName map[string]int
	// locks leads to the locks among the fields and embedded structs.
	locks [][]int
}

// infos caches infoOf; infoCount bounds it.
var (
	infos     sync.Map
	infoCount atomic.Int64
)

const maxInfos = 4096

// infoOf describes a struct type. Fields tagged natscope:"-" are left out.
func infoOf(t reflect.Type) *info {
	if cached, ok := infos.Load(t); ok {
		return cached.(*info)
	}
	i := &info{byName: make(map[string]int)}
	for n := range t.NumField() {
		f := t.Field(n)
		if f.Name == "_" || f.Tag.Get("natscope") == "-" {
			continue
		}
		i.byName[f.Name] = len(i.fields)
		i.fields = append(i.fields, field{f.Name, n, f.IsExported()})
	}
	i.findLocks(t, nil, 0)
	if infoCount.Load() < maxInfos {
		infoCount.Add(1)
		infos.Store(t, i)
	}
	return i
}

// maxEmbedded is how deep embedded structs are searched for locks.
const maxEmbedded = 3

func (i *info) findLocks(t reflect.Type, path []int, depth int) {
	for n := range t.NumField() {
		f := t.Field(n)
		at := append(append([]int(nil), path...), n)
		elem := f.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		switch {
		case elem == mutexType || elem == rwMutexType:
			i.locks = append(i.locks, at)
		case f.Anonymous && f.Type.Kind() == reflect.Struct && depth < maxEmbedded:
			i.findLocks(f.Type, at, depth+1)
		}
	}
}

var (
	mutexType   = reflect.TypeFor[sync.Mutex]()
	rwMutexType = reflect.TypeFor[sync.RWMutex]()
)
