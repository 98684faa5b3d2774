// Package storetest checks implementations of fleet.Store. TestStore checks every sentence of the contract. Compare
// drives two stores through the same history.
//
// The store's clock counts: grants are checked against Ask.Now. Tests wait for a store that runs in real time. A
// store whose clock the test moves is faster, and is tested to the microsecond.
package storetest

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// An Option describes an optional ability of the store.
type Option func(*suite)

// Driven returns an Option for stores whose clock moves only when advance is called. It applies to all stores that
// open returns.
func Driven(advance func(d time.Duration)) Option {
	return func(s *suite) { s.advance = advance }
}

// Hammer returns an Option that sets how long, by the store's clock, many goroutines take from one limit. The
// default is 2s.
func Hammer(d time.Duration) Option {
	return func(s *suite) { s.hammer = d }
}

type suite struct {
	open    func(t testing.TB) fleet.Store
	advance func(d time.Duration)
	hammer  time.Duration
	empty   func(t testing.TB, group string)
}

var tests = []struct {
	name string
	run  func(w *world)
}{
	{name: "copies are granted as the least of the claims bears", run: leastOfClaims},
	{name: "a refusal consumes nothing of the other claims", run: allOrNone},
	{name: "limits, keys and groups are apart", run: apart},
	{name: "extra is at most a quarter of what is left", run: extraIsAQuarter},
	{name: "no extra unless all copies were granted", run: extraAfterCopies},
	{name: "no copies only looks", run: lookTakesNothing},
	{name: "a claim that costs nothing takes nothing", run: costNothing},
	{name: "a cost above the limit is never granted", run: costAbove},
	{name: "what cannot be meant makes nothing", run: nonsense},
	{name: "waiting as long as was said is enough", run: honestWait},
	{name: "everything is there when it was said to be", run: honestReset},
	{name: "a call may cost the complete burst once the limit was full for the hold", run: completeBurst},
	{name: "a pause stops everyone", run: pauseStopsAll},
	{name: "a pause is never made shorter", run: pauseOnlyGrows},
	{name: "units come back by their mark", run: backByMark},
	{name: "units come back by their mark after a refusal", run: backAfterRefusal},
	{name: "nothing comes back without a mark", run: backWithoutMark},
	{name: "a tally counts a claim besides another, and its units come back", run: backToTally},
	{name: "what comes back twice makes no more than there was", run: backTwice},
	{name: "what has run out does not come back", run: backTooLate},
	{name: "what came back below does not come back again above", run: backShifted},
	{name: "what was taken of a window does not come back in the next", run: backOfOldWindow},
	{name: "what is owed is charged beyond what is left", run: owed},
	{name: "a repeat gets the first answer and spends nothing", run: repeated},
	{name: "a repeat settles nothing again", run: repeatedSettlement},
	{name: "a repeat whose first call never arrived is executed", run: repeatOfNothing},
	{name: "a call that arrives after its repeat is not executed again", run: lateOriginal},
	{name: "lanes are apart", run: lanesApart},
	{name: "a rate that changes keeps what was taken", run: changedRate},
	{name: "a rolling limit that changes keeps what was taken", run: changedRolling},
	{name: "a quota that changes keeps what was taken", run: changedFixed},
	{name: "a mark from before a change makes nothing", run: backAfterChange},
	{name: "a window begins with nothing gone", run: windowsRoll},
	{name: "windows that do not hold the present are refused", run: windowsElsewhere},
	{name: "a window that overlaps with the last begins with what was taken", run: windowsOverlap},
	{name: "a settlement opens no window of the future", run: settlementAhead},
	{name: "what is known to have gone counts in its window", run: seenCounts},
	{name: "what came back in a window does not count again for having been known", run: seenAndBack},
	{name: "records are made, changed and refused by version", run: recordVersions},
	{name: "records are forgotten after their time", run: recordsExpire},
	{name: "a version never comes again", run: versionsNeverReturn},
	{name: "records of any content", run: recordContents},
	{name: "64 swappers count exactly", run: swappersCount},
	{name: "clients are counted and forgotten", run: beats},
	{name: "calls whose context has ended fail", run: endedContext},
	{name: "32 limits in one ask", run: manyClaims},
	{name: "strange names", run: strangeNames},
	{name: "many keys in one group", run: manyKeys},
	{name: "bucket is never over under load", run: hammerBucket},
	{name: "fast bucket is never over under load", run: hammerFast},
	{name: "rolling is never over under load", run: hammerRolling},
	{name: "fixed is never over under load", run: hammerFixed},
	{name: "all or none under load", run: hammerSeveral},
	{name: "returns and debts under load", run: hammerReturns},
	{name: "a fleet uses what comes back after refusals", run: returnsAfterRefusals},
}

// TestStore checks a store against the contract. It calls open several times per subtest. The results must share
// their state: they may be clients of one server, or the same store. The suite closes nothing, so open should use
// t.Cleanup. Every group name is used in only one subtest of one run.
func TestStore(t *testing.T, open func(t testing.TB) fleet.Store, options ...Option) {
	s := &suite{open: open, hammer: time.Duration(raced.Of(2000, 400)) * time.Millisecond}
	for _, o := range options {
		o(s)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if s.advance == nil {
				t.Parallel() // mostly they wait for the store's clock
			}
			test.run(newWorld(t, s))
		})
	}
	if s.advance != nil {
		t.Run("processes that hold for different times", func(t *testing.T) { holdsDiffer(newWorld(t, s)) })
		t.Run("an expired part counts in a window that becomes longer", func(t *testing.T) { lengthened(newWorld(t, s)) })
	}
	if s.empty != nil && s.advance != nil {
		t.Run("an emptied store honours the parts that are shown", func(t *testing.T) { emptied(newWorld(t, s)) })
	}
}
