// Command mutants breaks weir on purpose, in one small way after another, and runs the
// tests that must notice. A breakage that no test notices is a promise that nobody
// keeps watch over.
//
//	go run ./internal/mutants              # all of them
//	go run ./internal/mutants -run breaker # those whose name matches
//	go run ./internal/mutants -list        # their names and reasons
//
// A run that was interrupted goes on where it was when it is started again on the same
// tree; -again begins anew. With -run nothing is left out.
//
// The breakages are data: list/AREA.txt, one file for each area. An entry reads
//
//	mutant  loser-probes
//	why     who loses the race for the probe would be one, too
//	file    breaker/breaker.go
//	test    ./breaker
//	run     TestOneProbe
//	old
//		old text, to be found exactly once, each line with a tab before it
//	new
//		new text; none to leave the old one out
//	end
//
// Its name is AREA/loser-probes. test names the packages of which a test must fail,
// separated by spaces; run, which may be left out, says which tests are run, as for
// go test. A second file line with its old and new text makes the breakage span two
// places. Lines that begin with # are comments.
//
// Nothing in the tree is changed: go test is given the broken file by -overlay.
package main
