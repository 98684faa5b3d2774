package gateway

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/veil"
)

func (x *exchange) identify(r *http.Request) *refuse.Facts {
	x.keys = make(map[string]string, 8)
	if b := progressOf(r.Context()); b != nil { // a request to another tier, whose caller is already known
		for scope, value := range b.of.keys {
			x.keys[scope] = value
		}
		x.nested, x.progress, x.unnamed = true, b, b.of.unnamed
	} else if c := x.d.o.Callers; c != nil {
		if err := c.identify(r, x.keys); err != nil {
			return unknownCaller(err)
		}
	}
	for scope, read := range x.d.scopes {
		if _, ok := x.keys[scope]; !ok {
			x.keys[scope] = read(r)
		}
	}
	x.whose, x.known = x.owner()
	presented := x.d.presented(r)
	if _, ok := x.keys[Caller]; !ok {
		x.keys[Caller], x.unnamed = x.caller(r, presented)
	}
	x.keys[Route], x.keys[Credential] = x.d.o.Name, x.d.o.Veil.Hide(cmp.Or(x.d.o.Key, presented))
	return nil
}

// owner returns the owner of the cached answers that the request may use: the tenant, or without a tenant the caller's
// keys. It returns false if no key identifies the caller.
func (x *exchange) owner() (string, bool) {
	if tenant := x.keys[Tenant]; tenant != "" {
		return tenant, true
	}
	whose, known := x.keys[User], false
	if c := x.d.o.Callers; c != nil {
		for _, scope := range slices.Sorted(maps.Keys(c.Keys)) {
			whose += "\n" + x.keys[scope]
			known = known || x.keys[scope] != ""
		}
	}
	return whose, known
}

// caller returns the identity for fair queueing: the user or the caller's name, or else a hash of its API key and address.
func (x *exchange) caller(r *http.Request, presented string) (id string, unnamed bool) {
	if name := cmp.Or(x.keys[User], httpx.CallerOf(r.Context())); name != "" {
		return name, false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return x.d.o.Veil.Hide(presented + "\n" + host), true
}

// name sets the keys that are known after the body was read.
func (x *exchange) name() {
	model := x.route.Model
	if x.request != nil {
		model = x.request.Model
	}
	model = veil.Model(model)
	x.keys[Model] = model
	x.keys[Pool] = x.keys[Credential] + "/" + model
}
