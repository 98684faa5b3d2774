package price

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/seed1158cd35/weir/llm"
)

// others is the name for tenants, users and models that have no account.
const others = "(other)"

const longest = 200 // maximum length of a name in bytes

// An Account identifies a caller and the model that it used.
type Account struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	Model  string `json:"model"`
}

// Totals is the total usage of an account.
type Totals struct {
	Cost       Amount `json:"cost"` // in 1e-12 dollars
	Calls      int64  `json:"calls"`
	Input      int64  `json:"input"` // in tokens
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
}

// A Ledger adds up the costs of calls by tenant, user and model. Its number of accounts is bounded. When 90% of them
// exist, new users share one account for each tenant and model. When all exist, new names share the account "(other)". A
// Ledger is safe for concurrent use and must not be copied.
type Ledger struct {
	limit int

	mu       sync.RWMutex // protects the map, not the entries
	accounts map[Account]*entry
}

type entry struct {
	mu     sync.Mutex
	totals Totals
}

// NewLedger returns a ledger with at most the given number of accounts. The minimum is 10.
func NewLedger(accounts int) *Ledger {
	return &Ledger{limit: max(accounts, 10), accounts: make(map[Account]*entry)}
}

// Add records one call. Negative token counts count as 0.
func (l *Ledger) Add(tenant, user, model string, cost Amount, u llm.Usage) {
	e := l.entry(Account{tenant, user, model})
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.totals
	t.Cost = t.Cost.Add(cost)
	t.Calls++
	for _, n := range [...]struct {
		to   *int64
		more int64
	}{{&t.Input, u.Input}, {&t.Output, u.Output}, {&t.CacheRead, u.CacheRead}, {&t.CacheWrite, u.CacheWrite}} {
		*n.to = int64(Amount(*n.to).Add(Amount(max(n.more, 0))))
	}
}

func (l *Ledger) entry(a Account) *entry {
	l.mu.RLock()
	e := l.accounts[a]
	l.mu.RUnlock()
	if e != nil {
		return e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open(short(a))
}

// open returns the entry of an account, or a shared entry if there is no space for a new account.
func (l *Ledger) open(a Account) *entry {
	for _, try := range [...]struct {
		account Account
		room    int
	}{
		{a, l.limit * 9 / 10},
		{Account{a.Tenant, others, a.Model}, l.limit - 1},
		{Account{others, others, others}, l.limit},
	} {
		if e := l.accounts[try.account]; e != nil {
			return e
		}
		if len(l.accounts) < try.room {
			e := new(entry)
			l.accounts[try.account] = e
			return e
		}
	}
	return l.accounts[Account{others, others, others}] // the last account is reserved for it
}

// short returns an account with names of bounded length. The names are copied, so that they keep no larger string in
// memory.
func short(a Account) Account {
	for _, s := range []*string{&a.Tenant, &a.User, &a.Model} {
		*s = strings.Clone(strings.ToValidUTF8((*s)[:min(len(*s), longest)], ""))
	}
	return a
}

// All iterates over the totals of all accounts, sorted by tenant, user and model.
func (l *Ledger) All() iter.Seq2[Account, Totals] {
	return func(yield func(Account, Totals) bool) {
		l.mu.RLock()
		accounts := make([]Account, 0, len(l.accounts))
		entries := make(map[Account]*entry, len(l.accounts))
		for a, e := range l.accounts {
			accounts = append(accounts, a)
			entries[a] = e
		}
		l.mu.RUnlock()
		slices.SortFunc(accounts, func(a, b Account) int {
			return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.User, b.User), cmp.Compare(a.Model, b.Model))
		})
		for _, a := range accounts {
			if !yield(a, entries[a].read()) {
				return
			}
		}
	}
}

func (e *entry) read() Totals {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.totals
}
