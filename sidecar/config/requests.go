package config

import (
	"slices"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/doc"
)

// Requests is an SQS queue whose messages are requests to deliver later.
type Requests struct {
	Queue  string // URL with the server that receives the requests
	Region string // "" means the SDK's default
	Owner  string // caller that owns the deliveries; "" means none
}

var requestsFields = []field[Requests]{
	one("queue", word, func(r *Requests) *string { return &r.Queue }, "required", "URL of a standard or FIFO queue, different from that of `aws`. `weir store init` creates it with its dead letter queue."),
	one("region", word, func(r *Requests) *string { return &r.Region }, "from its URL", ""),
	one("owner", word, func(r *Requests) *string { return &r.Owner }, "none", "Caller that owns the deliveries. If there are `tokens`, it must be one of them, and its rights apply."),
}

func readRequests(d *decoder, n *node, v *Deliveries) {
	if isOff(n) {
		return
	}
	var r Requests
	if object(d, n, requestsFields, &r); n.Kind != doc.Mapping {
		return
	}
	if r.Queue == "" {
		d.Bad(n, "write queue: https://sqs.eu-central-1.amazonaws.com/123456789012/weir-requests", "has no queue")
	} else if !isServer(r.Queue) {
		d.Bad(n.Get("queue"), "write it as https://sqs.eu-central-1.amazonaws.com/123456789012/weir-requests", "is not the URL of a server")
	}
	v.Requests = &r
}

// OwnedBy reports whether the owner may call: the owner has one of the tokens, or no tokens are required.
func (r *Requests) OwnedBy(tokens []auth.TokenConfig) bool {
	return len(tokens) == 0 || slices.ContainsFunc(tokens, func(t auth.TokenConfig) bool { return t.Name == r.Owner })
}

// checkRequests reports a queue that has another purpose already, and an owner without rights.
func (d *decoder) checkRequests(root *node, f *document) {
	if f.Deliveries == nil || f.Deliveries.Requests == nil {
		return
	}
	r, at := f.Deliveries.Requests, root.Get("deliveries").Get("requests")
	if aws := f.Deliveries.AWS; aws != nil && aws.Queue == r.Queue {
		d.Bad(at.Get("queue"), "name another one", "is already the queue of deliveries.aws")
	}
	switch {
	case r.OwnedBy(f.Callable.Tokens):
	case r.Owner == "":
		d.Bad(at, "write owner: NAME, of one of tokens", "has no owner, which is required with tokens")
	default:
		d.Bad(at.Get("owner"), "name one of tokens", "unknown caller %s", doc.Quote(r.Owner))
	}
}
