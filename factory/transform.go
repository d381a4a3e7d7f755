package factory

import "fmt"

// TransformConflictError says that an informer exists already, and that its
// transform is another one, or may be.
type TransformConflictError struct {
	Key Key
	// Have is the transform of the informer that exists, and Asked the one that was
	// asked for.
	Have, Asked Transform
}

func (e *TransformConflictError) Error() string {
	text := fmt.Sprintf("informer of %v: it exists with %v, and was asked for with %v", e.Key, e.Have, e.Asked)
	if !e.certain() {
		text += "; InformerOptions.TransformName tells whether they are the same"
	}
	return text
}

// certain reports whether the transforms differ; otherwise that cannot be known.
func (e *TransformConflictError) certain() bool {
	return e.Have.Present != e.Asked.Present || e.Have.Name != "" && e.Asked.Name != ""
}

// Transform is what a factory knows of an ObjectTransform: not the function,
// since functions cannot be compared.
type Transform struct {
	// Present tells that there is one.
	Present bool
	// Name is its TransformName.
	Name string
}

func (t Transform) String() string {
	switch {
	case !t.Present:
		return "no transform"
	case t.Name == "":
		return "a transform without a name"
	default:
		return fmt.Sprintf("the transform %q", t.Name)
	}
}

func transformOf(opts InformerOptions) Transform {
	if opts.ObjectTransform == nil {
		return Transform{}
	}
	return Transform{Present: true, Name: opts.TransformName}
}

// same reports whether both are known to be the same.
func (t Transform) same(other Transform) bool {
	return t == other && (!t.Present || t.Name != "")
}
