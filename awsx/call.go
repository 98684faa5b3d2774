package awsx

import (
	"reflect"
	"sync"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awswire"
)

// Scopes by which limits may be counted, besides those that a program sets up itself.
const (
	Operation = "operation" // each operation for itself, made on first use
	Access    = "access"    // read or write
	Bucket    = "bucket"    // of S3
	Prefix    = "prefix"    // of S3: the bucket, and the key up to its first slash
)

// callOf is what the policy needs to know of a call.
func callOf(service, operation string, input any, scoped bool) weir.Call {
	f := fieldsOf(input)
	op := awswire.Named(service, operation, f.text(input, f.token) != "")
	c := weir.Call{Operation: operation, Safe: op.Safe}
	if !scoped {
		return c
	}
	c.Keys = map[string]string{Operation: operation, Access: access(op.Write)}
	if f.bucket != nil {
		bucket := f.text(input, f.bucket)
		c.Keys[Bucket] = bucket
		c.Keys[Prefix] = bucket + "/" + awswire.Prefix(f.text(input, f.key), 1)
	}
	return c
}

func access(write bool) string {
	if write {
		return "write"
	}
	return "read"
}

// fields are where an input has what matters here; nil where it has not.
type fields struct{ bucket, key, token []int }

var known sync.Map // reflect.Type -> *fields

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
		find := func(names ...string) []int {
			for _, n := range names {
				if at, ok := t.Elem().FieldByName(n); ok && at.Type == reflect.TypeFor[*string]() {
					return at.Index
				}
			}
			return nil
		}
		f.bucket, f.key = find("Bucket"), find("Key", "Prefix") // a list is one of its prefix
		f.token = find("ClientToken", "ClientRequestToken", "IdempotencyToken")
	}
	known.Store(t, f)
	return f
}

func (f *fields) text(input any, at []int) string {
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
