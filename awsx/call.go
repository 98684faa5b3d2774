package awsx

import (
	"maps"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/wire"
)

// Scopes by which limits may be counted, besides those that a program sets up itself: the
// limits of a Policy of its own name them.
const (
	Account   = "account"   // of the target, as are Region and Operation: every call has these three
	Region    = "region"    //
	Operation = "operation" // each operation for itself, made on first use
	Access    = "access"    // read or write
	Bucket    = "bucket"    // of S3
	Prefix    = "prefix"    // of S3: the bucket, and the key up to a slash, see Options.PrefixDepth
	Key       = "key"       // of S3: the object, without its bucket
	Table     = "table"     // of DynamoDB; "" for calls that name several
	Model     = "model"     // of Bedrock
	Function  = "function"  // of Lambda
	Queue     = "queue"     // of SQS: its URL
)

// Units of limits, besides requests.
const (
	// Items are what is in a batch: the items that DynamoDB writes or reads at once, the
	// messages of SQS, the records of Kinesis, the objects that S3 deletes, the instances
	// that EC2 starts or stops. A call that is no batch is one.
	Items = "items"

	Reads  = "reads"  // calls that change nothing
	Writes = "writes" // calls that do
)

// callOf is what the policy needs to know of a call.
func (u *upstream) callOf(operation string, input any) weir.Call {
	f := fieldsOf(input)
	op := wire.Named(u.target.Service, operation, f.hasToken(input))
	c := weir.Call{Operation: operation, Safe: op.Safe && !(op.Write && f.conditional(input)), Polls: op.Polls}
	if u.counted {
		c.Cost = map[string]int64{Items: f.size(input), units[op.Write]: 1}
	}
	c.Keys = u.keys(&op, f, input)
	return c
}

// keys are account, region and operation, with the values of the other scopes that the policy has. More is left out:
// it would stand in events and logs, and cost.
func (u *upstream) keys(op *wire.Op, f *fields, input any) map[string]string {
	where := u.where(op.Name)
	if len(u.scopes) == 0 {
		return where
	}
	keys := make(map[string]string, len(where)+len(u.scopes))
	maps.Copy(keys, where)
	for _, scope := range u.scopes {
		if v, ok := u.value(scope, op, f, input); ok {
			keys[scope] = v
		}
	}
	return keys
}

// where are the keys that every call of an operation has. They are made once for each of the service's operations, of
// which there are some hundred at most, and nobody writes to a call's keys.
func (u *upstream) where(operation string) map[string]string {
	if keys, ok := u.places.Load(operation); ok {
		return keys.(map[string]string)
	}
	keys := map[string]string{Account: u.target.Account, Region: u.target.Region, Operation: operation}
	u.places.Store(operation, keys)
	return keys
}

func (u *upstream) value(scope string, op *wire.Op, f *fields, input any) (v string, ok bool) {
	switch scope {
	case Access:
		return access(op.Write), true
	case Bucket:
		return text(input, f.bucket), f.bucket != nil
	case Key:
		return text(input, f.key), f.bucket != nil
	case Prefix:
		return text(input, f.bucket) + "/" + wire.Prefix(text(input, f.key), u.depth), f.bucket != nil
	case Table:
		if f.tables != nil {
			return f.table(input), true
		}
	}
	at, ok := f.named[scope]
	return text(input, at), ok
}

var units = map[bool]string{false: Reads, true: Writes}

func access(write bool) string {
	if write {
		return "write"
	}
	return "read"
}
