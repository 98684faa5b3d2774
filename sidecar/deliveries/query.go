package deliveries

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// Limits of lists and of actions.
const (
	usual      = 100
	most       = 1000
	mostIDs    = 1000
	longestArg = 512 // in bytes
)

// parameters are the parameters of a list.
var parameters = []string{"id", "upstream", "status", "reason", "owner", "older", "before", "oldest", "limit", "cursor"}

// A Choice selects deliveries.
type Choice struct {
	IDs      []string        `json:"ids,omitempty"`
	Upstream string          `json:"upstream,omitempty"`
	Status   delivery.Status `json:"status,omitempty"`
	Reason   delivery.Reason `json:"reason,omitempty"`
	Owner    string          `json:"owner,omitempty"`
	Older    string          `json:"older,omitempty"` // minimum time since the delivery's latest change of status
	Before   time.Time       `json:"before,omitzero"` // upper bound of the delivery's latest change of status
}

// list pages through deliveries.
func (q *request) list() (any, *refuse.Facts) {
	values, f := q.parameters()
	if f != nil {
		return nil, f
	}
	c := Choice{IDs: values["id"], Upstream: values.Get("upstream"), Status: delivery.Status(values.Get("status")),
		Reason: delivery.Reason(values.Get("reason")), Owner: values.Get("owner"), Older: values.Get("older")}
	var err error
	if v := values.Get("before"); v != "" {
		if c.Before, err = time.Parse(time.RFC3339, v); err != nil {
			return nil, bad("before", "want a time such as 2027-01-31T12:00:00Z")
		}
	}
	oldest := false
	if v := values.Get("oldest"); v != "" {
		if oldest, err = strconv.ParseBool(v); err != nil {
			return nil, bad("oldest", "want true or false")
		}
	}
	limit := usual
	if v := values.Get("limit"); v != "" {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > most {
			return nil, bad("limit", fmt.Sprintf("want 1 to %d", most))
		}
	}
	cursor := values.Get("cursor")
	if cursor != "" && c.Older != "" {
		return nil, bad("older", "cannot be combined with cursor: replace it with before, and its value in the response with the cursor")
	}
	filter, f := q.filter(&c)
	if f != nil {
		return nil, f
	}
	filter.Oldest = oldest
	page, next, err := q.queue.List(q.Context(), filter, cursor, limit)
	if err != nil {
		return nil, q.failed(err)
	}
	p := Page{Deliveries: make([]View, 0, len(page)), Next: next, Before: filter.Before}
	for i := range page {
		p.Deliveries = append(p.Deliveries, viewOf(&page[i]))
	}
	return p, nil
}

// parameters returns the query's parameters. Each must be known, short and, except for id, given once.
func (q *request) parameters() (url.Values, *refuse.Facts) {
	values, err := url.ParseQuery(q.URL.RawQuery)
	if err != nil {
		return nil, bad("query", "cannot be read: "+err.Error())
	}
	for name, all := range values {
		switch {
		case !slices.Contains(parameters, name):
			return nil, bad(doc.Quote(name), "is an unknown parameter; known are "+strings.Join(parameters, ", "))
		case len(all) > 1 && name != "id":
			return nil, bad(name, "is in the query more than once")
		}
		for _, v := range all {
			if len(v) > longestArg {
				return nil, bad(name, fmt.Sprintf("is longer than %d bytes", longestArg))
			}
		}
	}
	return values, nil
}

// filter returns the filter of a choice. It selects only the caller's own deliveries, unless the caller is an
// operator.
func (q *request) filter(c *Choice) (delivery.Filter, *refuse.Facts) {
	f := delivery.Filter{IDs: c.IDs, Upstream: c.Upstream, Status: c.Status, Reason: c.Reason, Owner: c.Owner, Before: c.Before}
	if wrong := q.mayChoose(c); wrong != nil {
		return f, wrong
	}
	if !q.who.Operator {
		f.Owner = q.who.Name
	}
	switch {
	case len(c.IDs) > mostIDs:
		return f, bad("ids", fmt.Sprintf("are more than %d", mostIDs))
	case c.Reason != "" && !slices.Contains(delivery.Reasons[:], c.Reason):
		return f, bad("reason", fmt.Sprintf("%s is invalid: want one of %s", doc.Quote(string(c.Reason)), delivery.Listed(delivery.Reasons[:])))
	case c.Older != "" && !c.Before.IsZero():
		return f, bad("older", "cannot be combined with before: use one of them")
	}
	if c.Older != "" {
		long, err := time.ParseDuration(c.Older)
		if err != nil || long < 0 {
			return f, bad("older", "want a duration such as 90m or 24h")
		}
		f.Before = time.Now().Add(time.Millisecond - long).Truncate(time.Millisecond).UTC()
	}
	if err := f.Check(); err != nil {
		return f, q.failed(err)
	}
	return f, nil
}

// mayChoose refuses lists to callers without a name. Only operators may list other callers' deliveries.
func (q *request) mayChoose(c *Choice) *refuse.Facts {
	switch {
	case q.who.Operator:
	case q.who.Name == "":
		return refused(http.StatusForbidden, refuse.Forbidden, "callers without a token or certificate can read single deliveries only, by ID: %s/ID; operators list them on the admin listener", Path)
	case c.Owner != "" && c.Owner != q.who.Name:
		return refused(http.StatusForbidden, refuse.Forbidden, "owner: callers can list only their own deliveries")
	}
	return nil
}
