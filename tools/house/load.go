package main

import (
	"fmt"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/seed1158cd35/weir"

// A room is a package with its tests.
type room struct {
	path string // within the module; "." is the root
	*packages.Package
}

// load loads all packages of the module, with their tests.
func load(tree string) ([]room, error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: tree, Tests: true}, "./...")
	if err != nil {
		return nil, err
	}
	var rooms []room
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %v", p.PkgPath, p.Errors[0])
		}
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue
		}
		rooms = append(rooms, room{within(strings.TrimSuffix(p.PkgPath, "_test")), p})
	}
	return rooms, nil
}

// within returns the path of a package in the module; "." is the root.
func within(pkg string) string {
	if path := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/"); path != "" {
		return path
	}
	return "."
}

// plain returns the rooms without their tests.
func plain(rooms []room) (all []room) {
	for _, r := range rooms {
		if r.ID == r.PkgPath {
			all = append(all, r)
		}
	}
	return all
}

// servesTests reports whether a package is not a part of the product.
func servesTests(path string) bool {
	return strings.HasPrefix(path, "internal/test/") || strings.HasPrefix(path, "internal/mutants") ||
		strings.HasPrefix(path, "cmd/weir-demo") || strings.HasPrefix(path, "examples") || path == "fleet/storetest" || path == "delivery/deliverytest"
}
