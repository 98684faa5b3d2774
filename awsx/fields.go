package awsx

import (
	"reflect"
	"strings"
	"sync"
)

// fields are the indexes of the relevant fields of an input; nil if it lacks one.
type fields struct {
	bucket, key []int
	tokens      [][]int
	conditions  [][]int
	batch       []int
	tables      []int            // of a batch: a map by table name
	named       map[string][]int // by scope
}

// The SDK fills in the tokens of operations that have one. The last two are of queues that drop duplicates, and of Route 53 and
// CloudFront.
var tokenNames = []string{"ClientToken", "ClientRequestToken", "IdempotencyToken", "MessageDeduplicationId", "CallerReference"}

var batchNames = []string{"RequestItems", "TransactItems", "Entries", "Records", "Delete", "MaxCount", "InstanceIds"}

var scopeNames = map[string]string{"TableName": Table, "ModelId": Model, "FunctionName": Function, "QueueUrl": Queue}

var known sync.Map // reflect.Type -> *fields

// fieldsOf returns the fields of an input. They are determined once per type.
func fieldsOf(input any) *fields {
	t := reflect.TypeOf(input)
	if t == nil {
		return &fields{}
	}
	if f, ok := known.Load(t); ok {
		return f.(*fields)
	}
	f := new(fields)
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		f.find(t.Elem())
	}
	known.Store(t, f)
	return f
}

func (f *fields) find(t reflect.Type) {
	f.bucket, f.key = first(t, "Bucket"), first(t, "Key", "Prefix") // a list belongs to its prefix
	for i := range t.NumField() {
		if n := t.Field(i); n.IsExported() && (strings.HasPrefix(n.Name, "If") || strings.HasPrefix(n.Name, "CopySourceIf") || n.Name == "WriteOffsetBytes") &&
			n.Type.Kind() == reflect.Pointer {
			f.conditions = append(f.conditions, n.Index)
		}
	}
	for _, n := range tokenNames {
		if at := first(t, n); at != nil {
			f.tokens = append(f.tokens, at)
		}
	}
	f.named = map[string][]int{}
	for field, scope := range scopeNames {
		if at := first(t, field); at != nil {
			f.named[scope] = at
		}
	}
	if at, ok := t.FieldByName("RequestItems"); ok && at.Type.Kind() == reflect.Map {
		f.tables = at.Index
	}
	for _, n := range batchNames {
		if at, ok := t.FieldByName(n); ok {
			f.batch = at.Index
			break
		}
	}
}

// first returns the first of the fields that exists and is a string.
func first(t reflect.Type, names ...string) []int {
	for _, n := range names {
		if at, ok := t.FieldByName(n); ok && at.Type == reflect.TypeFor[*string]() {
			return at.Index
		}
	}
	return nil
}

// hasToken reports whether an input has a token by which the service recognizes a repeated request.
func (f *fields) hasToken(input any) bool {
	for _, at := range f.tokens {
		if text(input, at) != "" {
			return true
		}
	}
	return false
}

// conditional reports whether an input has a condition that its own success makes false. If such a call is repeated after it
// succeeded, it is refused, as if another caller had been first.
func (f *fields) conditional(input any) bool {
	v := reflect.ValueOf(input)
	for _, at := range f.conditions {
		if !v.IsNil() && !v.Elem().FieldByIndex(at).IsNil() {
			return true
		}
	}
	return false
}

func text(input any, at []int) string {
	if at == nil {
		return ""
	}
	v := reflect.ValueOf(input)
	if v.IsNil() {
		return ""
	}
	if s, _ := v.Elem().FieldByIndex(at).Interface().(*string); s != nil {
		return *s
	}
	return ""
}

// table returns the table of a batch with one table, "" if it has several.
func (f *fields) table(input any) string {
	v := reflect.ValueOf(input)
	if v.IsNil() {
		return ""
	}
	if m := v.Elem().FieldByIndex(f.tables); m.Len() == 1 {
		return m.MapKeys()[0].String()
	}
	return ""
}

// size returns the number of items in a batch, 1 for other inputs.
func (f *fields) size(input any) int64 {
	if f.batch == nil || reflect.ValueOf(input).IsNil() {
		return 1
	}
	return max(1, count(reflect.ValueOf(input).Elem().FieldByIndex(f.batch)))
}

// count counts the elements of lists, including lists in maps and behind pointers. A number counts as its value.
func count(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.Slice:
		return int64(v.Len())
	case reflect.Int32: // number of instances
		return v.Int()
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			n += count(i.Value())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return count(v.Elem())
		}
	case reflect.Struct: // keys of a table, objects to delete
		for _, name := range []string{"Keys", "Objects"} {
			if list := v.FieldByName(name); list.IsValid() && list.Kind() == reflect.Slice {
				return int64(list.Len())
			}
		}
	}
	return n
}
