package dynamosqs

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
	"github.com/seed1158cd35/weir/outcome"
)

// An item has a partition key k and a sort key n. n is 0 except where stated:
//
//	D#seq        a delivery; with n from 1 its attempts, except the latest, which is in the record
//	B#seq#print  a large body
//	O#seq#print  a note for sweeps that such a body was stored
//	K#hash       an idempotency key
//	L#hash       an order key; with n from 1 its positions
//	C#upstream   the counts of an upstream
//	T#hash       what a tenant stores; n is the week in which it was accepted
//	W#hash       a response to a direct call under a key
//	U            the names of all upstreams
//
// Three indexes contain the keys of deliveries. due (q, d) has queued deliveries by when they are due, and dead letters
// by when they failed. list (s, o) has the deliveries of an upstream and status in the order in which they were accepted. watch
// (w, t) has all by when a sweep must read them. Deliveries whose callback is not stored yet are in a separate partition of
// watch.
type item = map[string]types.AttributeValue

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}
func raw(v []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: v} }

func text(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func number(it item, name string) int64 {
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		n, _ := strconv.ParseInt(v.Value, 10, 64)
		return n
	}
	return 0
}

func bytesOf(it item, name string) []byte {
	if v, ok := it[name].(*types.AttributeValueMemberB); ok && len(v.Value) > 0 {
		return v.Value
	}
	return nil
}

func key(k string, n int64) item { return item{"k": str(k), "n": num(n)} }

// hashed returns a key that is a hash of several strings.
func hashed(kind string, parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return kind + "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// seqOf returns the seq for a delivery's ID.
func seqOf(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return max(1, int64(binary.BigEndian.Uint64(sum[:])>>1))
}

func recordKey(seq int64) string { return "D#" + strconv.FormatInt(seq, 10) }

// octets is a string of any bytes. In JSON, a value that is not UTF-8 becomes {"b": base64}.
type octets string

func (o octets) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(o)) {
		return json.Marshal(string(o))
	}
	return json.Marshal(map[string][]byte{"b": []byte(o)})
}

func (o *octets) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var of struct{ B []byte }
		err := json.Unmarshal(b, &of)
		*o = octets(of.B)
		return err
	}
	return json.Unmarshal(b, (*string)(o))
}

// A record is a delivery as it is stored: readable JSON in the attribute r. Times are in milliseconds.
type record struct {
	ID, Tenant, Owner, Upstream                 octets `json:",omitempty"`
	Method, Path, Query, Header                 octets `json:",omitempty"`
	Key, OrderKey, Correlation                  octets `json:",omitempty"`
	Stop                                        bool   `json:",omitempty"`
	NotBefore, Expires, TokenEnds               int64  `json:",omitempty"`
	Print                                       []byte
	Large                                       bool  `json:",omitempty"` // the body is in a separate item
	Size                                        int64 `json:",omitempty"` // bytes of the request; 0 for records from before sizes were stored
	Order                                       int64
	Status                                      delivery.Status
	Due, Accepted, Changed, Lease, Began, Fence int64           `json:",omitempty"`
	Attempts, Starts, Series, Stalls            int             `json:",omitempty"`
	Reason                                      delivery.Reason `json:",omitempty"`
	Detail, Worker                              octets          `json:",omitempty"`
	Home                                        int64           `json:",omitempty"` // the store that changed it last
	Place                                       int64           `json:",omitempty"` // position within its order key
	Stops                                       bool            `json:",omitempty"` // as a dead letter it blocks its order key
	Follow                                      int64           `json:",omitempty"` // when a sweep must check whether all that follows the latest change was done
	Nudge                                       int64           `json:",omitempty"` // when a sweep must send a message again
	Callback, Tells                             octets          `json:",omitempty"`
	Beside                                      octets          `json:",omitempty"` // refers to a body that is too large for an item
	Told                                        int             `json:",omitempty"` // the latest series whose callback is stored
	Last                                        *attempt        `json:",omitempty"`

	seq     int64
	version string
	body    []byte
}

// An attempt is the stored form of a delivery.Attempt.
type attempt struct {
	N, Series   int
	Began, Took int64
	Status      int    `json:",omitempty"`
	Class       string `json:",omitempty"`
	Code        octets `json:",omitempty"`
	Answer      []byte `json:",omitempty"`
	Counted     bool   `json:",omitempty"`
}

func (a *attempt) attempt() delivery.Attempt {
	var class outcome.Class
	_ = class.UnmarshalText([]byte(a.Class)) // an unknown name leaves Unknown
	return delivery.Attempt{N: a.N, Series: a.Series, Began: stored.At(a.Began), Took: time.Duration(a.Took) * time.Millisecond,
		Status: a.Status, Class: class, Code: string(a.Code), Answer: a.Answer, Counted: a.Counted}
}

// watches is the number of partitions of the index watch.
const watches = 8

// large is the largest body that is stored in the record, which every change writes again.
const large = 4 << 10

// item returns the record as an item, with the keys of the indexes.
func (r *record) item(o *Options) (item, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	it := key(recordKey(r.seq), 0)
	up := partition(string(r.Upstream))
	it["r"], it["v"] = str(string(b)), str(r.version)
	it["s"], it["o"] = str(string(r.Status)+" "+up), num(r.Order)
	if len(r.body) > 0 && !r.Large {
		it["body"] = raw(r.body)
	}
	switch r.Status {
	case delivery.Queued:
		it["q"], it["d"] = str("queued "+up), str(place(r.Due, r.seq))
	case delivery.Failed:
		it["q"], it["d"] = str("failed "+up), str(place(r.Changed, r.seq))
	}
	if r.owes() {
		it["w"], it["t"] = str(owing), num(r.Changed)
	} else if t := r.watch(o); t != 0 {
		it["w"], it["t"] = str(strconv.FormatInt(r.seq%watches, 10)), num(t)
	}
	return it, nil
}

// partition returns the name of an upstream for use in keys, which must be UTF-8.
func partition(upstream string) string {
	if utf8.ValidString(upstream) {
		return upstream
	}
	return strconv.QuoteToASCII(upstream)
}

// place returns a position in the index due.
func place(due, seq int64) string { return fmt.Sprintf("%015d %019d", max(0, due), max(0, seq)) }

// watch returns when a sweep must read the record; 0 for never.
func (r *record) watch(o *Options) (t int64) {
	switch r.Status {
	case delivery.Processing:
		t = r.Lease
	case delivery.Completed:
		t = r.Changed + o.Keep.Milliseconds()
	case delivery.Failed:
		t = r.Changed + o.KeepDead.Milliseconds()
	case delivery.Created:
		t = r.Expires
	case delivery.Queued:
		if t = r.Expires; o.Queue != nil {
			t = sooner(t, r.Nudge)
		}
	}
	return sooner(t, r.Follow)
}

// sooner returns the earlier of two times, of which 0 means none.
func sooner(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

var errItem = errors.New("a stored delivery cannot be read")

func readRecord(it item) (*record, error) {
	r := &record{version: text(it, "v"), body: bytesOf(it, "body")}
	if err := json.Unmarshal([]byte(text(it, "r")), r); err != nil {
		return nil, fmt.Errorf("%w (%s): %w", errItem, text(it, "k"), err)
	}
	r.seq = seqOf(string(r.ID))
	return r, nil
}

// line returns the key of the items of the record's order key. It is empty without an order key.
func (r *record) line() string {
	if r.OrderKey == "" {
		return ""
	}
	return hashed("L", string(r.Upstream), string(r.Tenant), string(r.OrderKey))
}

// inLine reports whether later deliveries of the record's order key wait for it.
func (r *record) inLine() bool {
	return r.Status != delivery.Completed && (r.Status != delivery.Failed || r.Stops)
}

func (r *record) bodyKey() string { return fmt.Sprintf("%s%d#%x", bodyPrefix, r.seq, r.Print) }

// delivery converts the record. The Header is nil if it cannot be read.
func (r *record) delivery() (delivery.Delivery, error) {
	d := delivery.Delivery{
		Request: delivery.Request{ID: string(r.ID), Tenant: string(r.Tenant), Owner: string(r.Owner), Upstream: string(r.Upstream),
			Method: string(r.Method), Path: string(r.Path), Query: string(r.Query), Body: r.body, Key: string(r.Key), OrderKey: string(r.OrderKey),
			Stop: r.Stop, Correlation: string(r.Correlation), Callback: string(r.Callback), Tells: string(r.Tells), NotBefore: at(r.NotBefore), Expires: at(r.Expires), TokenEnds: at(r.TokenEnds)},
		Seq: r.seq, Status: r.Status, Due: stored.At(r.Due), Attempts: r.Attempts, Starts: r.Starts, Series: r.Series,
		Accepted: stored.At(r.Accepted), Changed: stored.At(r.Changed), Reason: r.Reason, Detail: string(r.Detail), Fence: r.Fence, Lease: at(r.Lease),
	}
	var err error
	d.Header, err = stored.ReadHeader(string(r.Header))
	large, torn := delivery.ParseBlob(string(r.Beside))
	d.Large = large
	return d, cmp.Or(err, torn)
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return stored.At(ms)
}
