package status

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A Giving is an order to give units of a budget back.
type Giving struct {
	Upstream string `json:"upstream"` // "" if only one upstream has the budget
	Limit    string `json:"limit"`    // "" if only one limit in dollars has the key
	Key      string `json:"key"`      // "" without a scope
	USD      string `json:"usd"`      // a decimal number of dollars
	Reason   string `json:"reason"`   // for the log
}

// Given is the response to an order to give units of a budget back.
type Given struct {
	Upstream string  `json:"upstream"`
	Limit    Limit   `json:"limit"`     // afterwards
	USD      float64 `json:"given_usd"` // at most what was spent
}

// longestReason is the largest number of characters of a reason.
const longestReason = 200

// dollarsText is an amount of dollars.
var dollarsText = regexp.MustCompile(`^\d{1,9}(\.\d{1,6})?$`)

// microOf reads an amount of dollars as millionths; 0 if it is invalid.
func microOf(text string) int64 {
	if !dollarsText.MatchString(text) {
		return 0
	}
	whole, part, _ := strings.Cut(text, ".")
	n, _ := strconv.ParseInt(whole+(part + "000000")[:6], 10, 64) // it has at most 15 digits
	return n
}

func (p *Page) budget(w http.ResponseWriter, r *http.Request) {
	var o Giving
	if !read(w, r, &o, `{"key":"alice","usd":"5","reason":"the model was mispriced"}`) {
		return
	}
	u, name, key, err := p.budgetOf(&o)
	var n, given int64
	if err == nil {
		if n = microOf(o.USD); n == 0 {
			err = fmt.Errorf("usd %q: want an amount of dollars above 0, such as 5 or 0.25", o.USD)
		}
	}
	if length := utf8.RuneCountInString(strings.TrimSpace(o.Reason)); err == nil && (length == 0 || length > longestReason) {
		err = fmt.Errorf("reason: want up to %d characters; they are written to the log", longestReason)
	}
	if err == nil {
		given, err = u.Give(name, key, n)
	}
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if p.Log != nil {
		p.Log.Warn("operator action", "do", "give", "upstream", u.Name(), "limit", name, "key", cleanName(key), "usd", limit.Dollars(given), "asked", limit.Dollars(n),
			"why", cleanName(strings.TrimSpace(o.Reason)), "by", p.Who(r))
	}
	a := Given{Upstream: u.Name(), USD: float64(given) / 1e6}
	for _, v := range keyOf(u, name, key) {
		a.Limit = limitOf(v)
	}
	answer(w, a)
}

// budgetOf returns the one budget that an order can mean, and its key in the stored form.
func (p *Page) budgetOf(o *Giving) (u *weir.Upstream, name, key string, err error) {
	all := p.Upstreams()
	if o.Upstream != "" && all[o.Upstream] == nil {
		return nil, "", "", unknown(o.Upstream)
	}
	var found, texts []string
	for _, of := range slices.Sorted(maps.Keys(all)) {
		for _, l := range all[of].Policy().Limits {
			if o.Upstream != "" && o.Upstream != of || o.Limit != "" && o.Limit != l.Name || o.Limit == "" && !l.IsBudget() || (l.Scope == "") != (o.Key == "") {
				continue
			}
			stored := p.name(l.Scope, o.Key)
			text := of + "/" + l.Name
			texts = append(texts, text)
			if o.Limit == "" && o.Key != "" && len(keyOf(all[of], l.Name, stored)) == 0 {
				continue
			}
			found = append(found, text)
			u, name, key = all[of], l.Name, stored
		}
	}
	switch {
	case len(found) == 1:
		return u, name, key, nil
	case len(found) > 1:
		return nil, "", "", errors.New("several budgets fit: name the limit: " + strings.Join(found, ", "))
	case len(texts) > 0:
		return nil, "", "", fmt.Errorf("key %q: no call with this key is known to %s", o.Key, strings.Join(texts, ", "))
	case o.Limit != "":
		return nil, "", "", fmt.Errorf("limit %q: no such limit, or %s", o.Limit, keyHint(o.Key))
	}
	return nil, "", "", errors.New("no limit in dollars fits: " + keyHint(o.Key))
}

// keyHint describes a likely mistake in the key of an order.
func keyHint(key string) string {
	if key == "" {
		return "it has a scope: name the key"
	}
	return "it has no scope: leave the key out"
}

// keyOf returns the state of a known key of a limit; nil if it is unknown.
func keyOf(u *weir.Upstream, name, key string) (all []weir.LimitView) {
	for _, v := range u.LookKey(name, key) {
		if !v.Unknown {
			all = append(all, v)
		}
	}
	return all
}

// Text describes the result for people.
func (g *Given) Text() string {
	of := g.Upstream + " " + g.Limit.Name
	if g.Limit.Key != "" {
		of += " of " + cleanName(g.Limit.Key)
	}
	return fmt.Sprintf("%s: %s USD given back, %s remain", of, limit.Dollars(int64(g.USD*1e6+0.5)), g.Limit.Remaining("/"))
}
