package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mutant is a file with one small change.
type mutant struct {
	// id names the mutant by its file, its function and its change, without a line number,
	// so that other changes of the file leave the name as it is.
	id   string
	file string
	// changed is the whole text of the file.
	changed []byte
}

// mutate returns the mutants of a file of Go. It changes the bodies of functions only.
func mutate(file string, text []byte) ([]mutant, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	m := &mutator{file: file, text: text, offset: func(p token.Pos) int { return files.Position(p).Offset }, seen: map[string]int{}}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			m.function = f.Name.Name
			m.conditions = map[ast.Expr]bool{}
			ast.Inspect(f.Body, m.visit)
		}
	}
	return m.mutants, nil
}

type mutator struct {
	file     string
	text     []byte
	offset   func(token.Pos) int
	function string
	// conditions are those of the if statements and cases of the function.
	conditions map[ast.Expr]bool
	// seen counts the mutants of each name.
	seen    map[string]int
	mutants []mutant
}

// source is the text of a node.
func (m *mutator) source(n ast.Node) string {
	return string(m.text[m.offset(n.Pos()):m.offset(n.End())])
}

// replace adds the mutant with other text in the place of a node.
func (m *mutator) replace(n ast.Node, by, change string) { m.splice(n.Pos(), n.End(), by, change) }

// splice adds the mutant with other text from one place to another.
func (m *mutator) splice(from, to token.Pos, by, change string) {
	start, end := m.offset(from), m.offset(to)
	id := fmt.Sprintf("%s %s: %s", m.file, m.function, shorten(change))
	m.seen[id]++
	if n := m.seen[id]; n > 1 {
		id += fmt.Sprintf(" #%d", n)
	}
	changed := append(append(append([]byte{}, m.text[:start]...), by...), m.text[end:]...)
	m.mutants = append(m.mutants, mutant{id: id, file: m.file, changed: changed})
}

// shorten makes one line of a text, of 80 characters at most.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:77]) + "..."
	}
	return text
}

// opposite are the operators that take each other's place.
var opposite = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

func (m *mutator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.condition(n.Cond)
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			m.clause(clause.(*ast.CaseClause).List, n.Tag == nil)
		}
	case *ast.BinaryExpr:
		m.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT && !m.conditions[n] {
			m.replace(n, m.source(n.X), m.source(n.X)+" for "+m.source(n))
		}
	case *ast.CallExpr:
		m.call(n)
	case *ast.Ident:
		switch n.Name {
		case "true":
			m.replace(n, "false", "false for true")
		case "false":
			m.replace(n, "true", "true for false")
		}
	case *ast.BranchStmt:
		if n.Label == nil && n.Tok == token.CONTINUE {
			m.replace(n, "break", "break for continue")
		}
	case *ast.AssignStmt:
		m.assignment(n)
	case *ast.IncDecStmt:
		m.replace(n, "_ = "+m.source(n.X), "without "+m.source(n))
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !m.locks(call) {
			m.replace(n, "", "without "+m.source(n))
		}
	case *ast.DeferStmt:
		if !m.locks(n.Call) {
			m.replace(n, "", "without "+m.source(n))
		}
	}
	return true
}

// condition makes a condition always true, and always false. Of one with && or ||, the
// operands are left out instead.
func (m *mutator) condition(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		return
	}
	m.conditions[cond] = true
	m.replace(cond, "false && ("+m.source(cond)+")", "never "+m.source(cond))
	m.replace(cond, "true || ("+m.source(cond)+")", "always "+m.source(cond))
}

// clause changes the expressions of a case.
func (m *mutator) clause(list []ast.Expr, conditions bool) {
	for i, e := range list {
		switch {
		case conditions:
			m.condition(e)
		case i > 0:
			m.splice(list[i-1].End(), e.End(), "", "without case "+m.source(e))
		case len(list) > 1:
			m.splice(e.Pos(), list[1].Pos(), "", "without case "+m.source(e))
		}
	}
}

func (m *mutator) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR:
		m.replace(n, m.source(n.X), fmt.Sprintf("without %s %s", n.Op, m.source(n.Y)))
		m.replace(n, m.source(n.Y), fmt.Sprintf("without %s %s", m.source(n.X), n.Op))
		return
	case token.EQL, token.NEQ:
		if m.conditions[n] {
			return
		}
	}
	if other, ok := opposite[n.Op]; ok {
		m.splice(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(), fmt.Sprintf("%s with %s", m.source(n), other))
	}
}

func (m *mutator) call(n *ast.CallExpr) {
	f, ok := n.Fun.(*ast.Ident)
	if !ok {
		return
	}
	switch f.Name {
	case "min":
		m.splice(f.Pos(), f.End(), "max", "max for "+m.source(n))
	case "max":
		m.splice(f.Pos(), f.End(), "min", "min for "+m.source(n))
	}
}

// assignment leaves an assignment out, but not what it computes.
func (m *mutator) assignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	blanks, blank := []string{}, 0
	for _, to := range n.Lhs {
		if m.source(to) == "_" {
			blank++
		}
		blanks = append(blanks, "_")
	}
	if blank < len(n.Lhs) {
		m.splice(n.Pos(), n.Rhs[0].Pos(), strings.Join(blanks, ", ")+" = ", "without "+m.source(n))
	}
}

// locks reports whether a call is one of a lock: what a race makes of it is not what tests
// without the race detector show.
func (m *mutator) locks(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch selector.Sel.Name {
	case "Lock", "Unlock", "RLock", "RUnlock":
		return true
	}
	return false
}
