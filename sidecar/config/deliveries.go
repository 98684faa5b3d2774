package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// Deliveries configures where requests for later delivery are stored: File, Postgres or AWS.
type Deliveries struct {
	File     string // path
	Postgres *Postgres
	AWS      *AWSDeliveries
	Keep     time.Duration // how long delivered requests are kept
	KeepDead time.Duration // how long dead letters are kept

	Callbacks map[string]Callback // by name
	Requests  *Requests           // queue of messages that submit deliveries; nil means none

	MaxStored int64 // limit of stored deliveries; 0 means the default of the storage
	MaxSize   int64 // limit of the bytes of their requests; 0 as for MaxStored

	MaxBody  int64     // largest body
	Bodies   string    // folder for bodies too large for records; "" if there are none, or they are in a bucket
	InBucket *S3Bodies // nil if there are none, or they are in a folder
}

var deliveriesFields = []field[Deliveries]{
	one("file", orOff(word, ""), func(v *Deliveries) *string { return &v.File }, "one of `file`, `postgres`, `aws`", "SQLite database for one process, on a local disk."),
	{"postgres", "fields", "one of the three", "PostgreSQL database for a fleet; `weir store init` creates its tables.", readPostgres},
	{"aws", "fields", "one of the three", "DynamoDB table and SQS queue for a fleet; `weir store init` creates both.", readAWSDeliveries},
	one("keep", duration, func(v *Deliveries) *time.Duration { return &v.Keep }, "168h", "How long weir keeps completed deliveries. It keeps idempotency keys for 30 days, or for `keep` if that is longer."),
	one("keep_dead", duration, func(v *Deliveries) *time.Duration { return &v.KeepDead }, "720h", ""),
	one("max_stored", count[int64](1), func(v *Deliveries) *int64 { return &v.MaxStored }, "1000000 with `file`, else 10000000", "Maximum number of stored deliveries; a named caller may store half and then gets 429. When the maximum is reached, callers get 507. Use the same value in a fleet."),
	one("max_size", size(1, 1<<50), func(v *Deliveries) *int64 { return &v.MaxSize }, "4GiB with `file`, else 64GiB", "Maximum size of all stored requests, including `bodies`."),
	one("max_body", size(1, 1<<40), func(v *Deliveries) *int64 { return &v.MaxBody }, "256KiB", "Largest request body. Bodies above 256KiB are stored in `bodies`."),
	one("bodies", word, func(v *Deliveries) *string { return &v.Bodies }, "with `file`: its name with `.bodies`", "Directory for large bodies, or `s3://BUCKET/PREFIX` with optional `?region=` and `&endpoint=`. A fleet shares one, which no other fleet may use."),
	{"callbacks", "callbacks by name", "none", "Receivers of delivery results; see `deliver_callback`.", readCallbacks},
	{"requests", "fields", "none", "SQS queue whose messages become deliveries.", readRequests},
}

func readDeliveries(d *decoder, n *node, f *document) {
	v := Deliveries{Keep: 7 * 24 * time.Hour, KeepDead: 30 * 24 * time.Hour, MaxBody: delivery.MaxBody}
	if object(d, n, deliveriesFields, &v); n.Kind != doc.Mapping {
		return
	}
	named := 0
	for _, is := range [...]bool{v.File != "", v.Postgres != nil, v.AWS != nil} {
		if is {
			named++
		}
	}
	if named != 1 {
		d.Bad(n, "write deliveries: {file: deliveries.db}", "needs one of file, postgres and aws")
	}
	if v.File != "" {
		v.File = d.beside(filepath.FromSlash(v.File))
	}
	switch {
	case strings.HasPrefix(v.Bodies, bucketScheme):
		readBucket(d, n, &v)
	case v.Bodies != "":
		v.Bodies = d.beside(filepath.FromSlash(v.Bodies))
	case v.File != "":
		v.Bodies = v.File + ".bodies"
	case v.MaxBody > delivery.MaxBody:
		d.Bad(n.Get("max_body"), "add bodies: s3://BUCKET/PREFIX, or a folder that all weirs of the fleet share", "bodies above 256KiB need bodies")
	}
	f.Deliveries = &v
}

func deliverySchedule(s string) (string, string, string) {
	if _, ok := delivery.ScheduleOf(s); !ok {
		return "", "is not a schedule of deliveries", "write webhook or messaging"
	}
	return s, "", ""
}

// checkDeliveries reports routes and operations whose deliveries could not be stored or sent.
func (d *decoder) checkDeliveries(root *node, f *document) {
	d.checkCallbacks(root, f)
	d.checkRequests(root, f)
	for _, p := range f.places {
		if p.Deliver != proxy.DeliverNever {
			d.checkLater(f, p.upstream, p.at.Get("deliver"))
		}
		d.checkKept(f, p.upstream, p.at, p.Keep, slices.ContainsFunc(f.owned, func(o owned) bool { return o.upstream == p.upstream && o.Over(p.Route).Keep.On }))
	}
	for _, o := range f.owned {
		own := o.Over(proxy.Route{})
		if own.Deliver != proxy.DeliverNever {
			d.checkLater(f, o.upstream, o.at.Get("deliver"))
		}
		d.checkKept(f, o.upstream, o.at, own.Keep, slices.ContainsFunc(f.places, func(p place) bool { return o.upstream == p.upstream && o.Over(p.Route).Keep.On }))
	}
	for i := range f.Upstreams {
		u := &f.Upstreams[i]
		for _, name := range u.Keep {
			if veil.Secret(name) {
				d.Bad(root.Get("upstreams").Get(u.Name).Get("deliver_headers"), "", "%s holds credentials, which are not stored", name)
			}
		}
	}
}

// checkLater reports a deliver setting that is not possible.
func (d *decoder) checkLater(f *document, upstream string, at *node) {
	switch {
	case at == nil:
	case f.Deliveries == nil:
		d.Bad(at, "write deliveries: {file: deliveries.db}", "deliveries are not configured")
	case f.isLLM(upstream):
		d.Bad(at, "", "requests of an upstream with llm cannot be delivered later yet")
	case f.unsigned(upstream):
		d.Bad(at, "write aws: {service: sqs, region: eu-west-1}", "the client's signature is not stored, so the service and region to sign for are required")
	}
}

func (f *document) isLLM(upstream string) bool {
	_, ok := f.LLM[upstream]
	return ok
}

// unsigned reports whether only the client's signature determines service and region of an AWS upstream.
func (f *document) unsigned(upstream string) bool {
	a, ok := f.AWS[upstream]
	return ok && (a.Service == "" || a.Region == "")
}

// checkKept reports a route or operation that keeps responses without a place to store them, or that configures this
// without keeping any. applies means that the settings apply to operations that do keep responses.
func (d *decoder) checkKept(f *document, upstream string, of *node, keep proxy.Keep, applies bool) {
	at := of.Get("idempotency")
	switch {
	case !keep.On && (keep.Waits || keep.Failed) && !applies:
		d.Bad(of, "add idempotency: keep", "idempotency_busy and idempotency_failed need idempotency: keep")
	case !keep.On || at == nil:
	case f.Deliveries == nil:
		d.Bad(at, "write deliveries: {file: deliveries.db}", "deliveries, which store responses, are not configured")
	case f.isLLM(upstream):
		d.Bad(at, "", "responses of an upstream with llm cannot be stored by key yet; use its cache")
	}
}
