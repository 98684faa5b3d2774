package awsx

import (
	"maps"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/wire"
)

// Scopes for limits. A program can add further scopes, and its Policy can name any of them.
const (
	Account   = "account"   // of the target; every call has Account, Region and Operation
	Region    = "region"    //
	Operation = "operation" // each operation has a separate limit, created on first use
	Access    = "access"    // read or write
	Bucket    = "bucket"    // of S3
	Prefix    = "prefix"    // of S3: the bucket, and the key up to a slash, see Options.PrefixDepth
	Key       = "key"       // of S3: the object, without its bucket
	Table     = "table"     // of DynamoDB; "" for calls with several tables
	Model     = "model"     // of Bedrock
	Function  = "function"  // of Lambda
	Queue     = "queue"     // of SQS: its URL
)

// Units of limits other than requests.
const (
	// Items counts the items of a batch: items that DynamoDB reads or writes, messages of SQS, records of Kinesis, objects that
	// S3 deletes, instances that EC2 starts or stops. A call without a batch counts as one.
	Items = "items"

	Reads  = "reads"  // calls that change nothing
	Writes = "writes" // calls that change something
)

// callOf returns the description of a call for the policy.
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

// keys returns account, region and operation, and the values of the policy's other scopes. Other values are omitted, because they
// would appear in events and logs, and cost time.
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

// where returns the keys that every call of an operation has. They are created once per operation of the service, which has some
// hundred at most. Nothing writes to a call's keys.
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
