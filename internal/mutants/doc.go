// Command mutants changes weir in one small, harmful way after the other, and runs the tests that must detect it. A change that
// no test detects is an untested promise.
//
//	go run ./internal/mutants              # all of them
//	go run ./internal/mutants -run breaker # those whose name matches
//	go run ./internal/mutants -list        # their names and reasons
//
// With -by, a single test must detect every selected mutant:
//
//	go run ./internal/mutants -file '^fleet/[a-z]+[.]go' -by './sim -run FleetUnderFaults'
//
// An interrupted run continues if it is started again on the same tree. -again starts over. With -run, -file or -by, the run skips no mutant.
//
// The mutants are data: list/AREA.txt, one file for each area. An entry has this form:
//
//	mutant  loser-probes
//	why     who loses the race for the probe would be one, too
//	file    breaker/breaker.go
//	test    ./breaker
//	run     TestOneProbe
//	old
//		old text, found exactly once, each line with a tab before it
//	new
//		new text; none to remove the old one
//	end
//
// Its name is AREA/loser-probes. test names packages, separated by spaces; in each a test must fail. run is optional and
// selects tests, as in go test. A second file line with old and new text changes a second place. Lines that begin with # are
// comments.
//
// The tree does not change: go test gets the changed file by -overlay.
package main
