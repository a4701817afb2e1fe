"""VACE in the dress of other libraries; each adapter imports its library only when used."""
