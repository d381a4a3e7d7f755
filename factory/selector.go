package factory

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// normalLabels writes a label selector in one way, although the same one can be
// written in many.
func normalLabels(text string) (string, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return "", err
	}
	requirements, _ := parsed.Requirements()
	terms := make([]string, 0, len(requirements))
	for _, r := range requirements {
		same, err := labels.NewRequirement(r.Key(), plainOperator(r), r.Values().List())
		if err != nil {
			return "", err
		}
		terms = append(terms, same.String())
	}
	return joined(terms), nil
}

// plainOperator is the simplest operator that says the same.
func plainOperator(r labels.Requirement) selection.Operator {
	alone := r.Values().Len() == 1
	switch op := r.Operator(); {
	case op == selection.DoubleEquals, op == selection.In && alone:
		return selection.Equals
	case op == selection.NotIn && alone: // like !=, it takes objects without the label
		return selection.NotEquals
	default:
		return op
	}
}

// normalFields does the same to a field selector.
func normalFields(text string) (string, error) {
	parsed, err := fields.ParseSelector(text)
	if err != nil {
		return "", err
	}
	requirements := parsed.Requirements()
	terms := make([]string, 0, len(requirements))
	for _, r := range requirements {
		term := fields.OneTermEqualSelector(r.Field, r.Value)
		if r.Operator == selection.NotEquals {
			term = fields.OneTermNotEqualSelector(r.Field, r.Value)
		}
		terms = append(terms, term.String())
	}
	return joined(terms), nil
}

func joined(terms []string) string {
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ",")
}
