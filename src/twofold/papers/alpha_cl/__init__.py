"""Understanding deep contrastive learning via coordinate-wise optimization (Tian 2022)."""
