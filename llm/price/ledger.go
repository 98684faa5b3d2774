package price

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/seed1158cd35/weir/llm"
)

// others is the name that stands for all for which a Ledger has no place.
const others = "(other)"

const longest = 200 // bytes of a name

// An Account is who has asked whom.
type Account struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	Model  string `json:"model"`
}

// Totals are what an account has used so far.
type Totals struct {
	Cost       Amount `json:"cost"` // in millionths of a millionth of a dollar
	Calls      int64  `json:"calls"`
	Input      int64  `json:"input"` // tokens
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
}

// A Ledger adds up what calls have cost, by tenant, user and model. It may be shared,
// and must not be copied. It keeps a bounded number of accounts: when nine tenths of
// them are there, users that are new are added up together for each tenant and model,
// and when all are, whatever is new under Others.
type Ledger struct {
	limit int

	mu       sync.RWMutex // of the map, not of what it leads to
	accounts map[Account]*entry
}

type entry struct {
	mu     sync.Mutex
	totals Totals
}

// NewLedger makes a ledger of at most so many accounts, and of ten at the least.
func NewLedger(accounts int) *Ledger {
	return &Ledger{limit: max(accounts, 10), accounts: make(map[Account]*entry)}
}

// Add books one call. Negative numbers of tokens count as 0.
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

// open is the entry of an account, or of those that it is one of where there is no
// place for itself.
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
	return l.accounts[Account{others, others, others}] // the last place is kept for it
}

// short is an account with names of bounded length, which keep nothing else alive.
func short(a Account) Account {
	for _, s := range []*string{&a.Tenant, &a.User, &a.Model} {
		*s = strings.Clone(strings.ToValidUTF8((*s)[:min(len(*s), longest)], ""))
	}
	return a
}

// All is the totals of every account, by tenant, user and model.
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
