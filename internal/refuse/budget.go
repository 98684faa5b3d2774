package refuse

import (
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// BudgetHeader contains the remaining amount of each limit in dollars that a call is charged to.
const BudgetHeader = "X-Weir-Budget"

// Budgets returns the value of BudgetHeader: "team; left=12.40; reset=2026-11-29T00:00:00+01:00", with an item for each
// limit in dollars. It returns "" if there is no item.
func Budgets(levels []weir.LimitLevel) string {
	var b []byte
	for i := range levels {
		if l := &levels[i]; l.Rule.IsBudget() {
			b = appendBudget(b, &l.Rule, l.Level.Left, l.Level.ResetAt)
		}
	}
	return string(b)
}

func appendBudget(b []byte, l *limit.Limit, left int64, reset time.Time) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(append(append(b, l.Name...), "; left="...), limit.Dollars(max(0, left))...)
	if l.Shape == limit.Calendar && !reset.IsZero() {
		b = reset.AppendFormat(append(b, "; reset="...), time.RFC3339)
	}
	return b
}

// budgets returns the value of BudgetHeader for a refusal.
func (f *Facts) budgets() string {
	var b []byte
	for i := range f.Limits {
		if l := &f.Limits[i]; l.rule.IsBudget() {
			b = appendBudget(b, &l.rule, l.Left, l.resets)
		}
	}
	return string(b)
}
