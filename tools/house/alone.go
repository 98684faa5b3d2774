package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// alone returns the exported names that only their own package, or its internal tests, use. Names that follow from
// other names are not checked: fields, methods, and types in the signatures of used names.
func alone(rooms []room) (all []string) {
	used := make(map[string]bool)
	for _, r := range rooms {
		for _, o := range r.TypesInfo.Uses {
			if o.Pkg() != nil && o.Parent() == o.Pkg().Scope() && (o.Pkg().Path() != r.PkgPath) {
				used[o.Pkg().Path()+"."+o.Name()] = true
			}
		}
	}
	for _, r := range plain(rooms) {
		if r.Name == "main" || servesTests(r.path) && !strings.Contains(r.path, "test/llmsim") {
			continue
		}
		shown := signatures(r.Types)
		scope := r.Types.Scope()
		for _, name := range scope.Names() {
			o := scope.Lookup(name)
			if o.Exported() && !used[r.PkgPath+"."+name] && !shown[o] && !isOfList(o) {
				all = append(all, fmt.Sprintf("%s.%s", r.path, name))
			}
		}
	}
	slices.Sort(all)
	return all
}

// isOfList reports whether a name is a constant of an exported type. Such a list is complete, even if some values are
// unused.
func isOfList(o types.Object) bool {
	c, ok := o.(*types.Const)
	if !ok {
		return false
	}
	named, ok := c.Type().(*types.Named)
	return ok && named.Obj().Exported()
}

// A viewer records the types of a package that its exported names expose: a caller of a function uses the type of its
// result, even if its code does not contain the type's name.
type viewer struct {
	of    *types.Package
	shown map[types.Object]bool
}

func signatures(p *types.Package) map[types.Object]bool {
	v := viewer{p, make(map[types.Object]bool)}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			v.name(o)
		}
	}
	return v.shown
}

func (v *viewer) name(o types.Object) {
	if f, ok := o.(*types.Func); ok {
		v.see(f.Type(), 0)
	}
	t, ok := o.(*types.TypeName)
	if !ok {
		return
	}
	switch under := t.Type().Underlying().(type) {
	case *types.Struct:
		for f := range under.Fields() {
			if f.Exported() {
				v.see(f.Type(), 0)
			}
		}
	case *types.Signature:
		v.see(under, 0)
	}
	if n, ok := t.Type().(*types.Named); ok {
		for m := range n.Methods() {
			if m.Exported() {
				v.see(m.Type(), 0)
			}
		}
	}
}

const deepest = 6 // nesting of types

func (v *viewer) see(t types.Type, depth int) {
	if depth > deepest {
		return
	}
	switch t := t.(type) {
	case *types.Named:
		if t.Obj().Pkg() == v.of {
			v.shown[t.Obj()] = true
		}
		for arg := range t.TypeArgs().Types() {
			v.see(arg, depth+1)
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, maps, channels
		if m, ok := t.(*types.Map); ok {
			v.see(m.Key(), depth+1)
		}
		v.see(t.Elem(), depth+1)
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for o := range tuple.Variables() {
				v.see(o.Type(), depth+1)
			}
		}
	}
}
